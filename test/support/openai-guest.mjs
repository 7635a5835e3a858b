/**
 * A guest that knows nothing of the broker's own routes: the official `openai` client, unchanged, behind the loopback
 * forwarder. Says hello and takes its turn as every worker does; its answer is what the client got, as JSON.
 */
import {
  PROTOCOL_VERSION,
  RUN_DIR,
  SEALED_PLACEHOLDER,
  SOCKET_NAME,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
} from '@sandbox/protocol'
import OpenAI from 'openai'
import { BrokerWire } from '../../packages/docker-worker/src/guest/shared/broker-wire.ts'
import { openLoopbackForwarder } from '../../packages/docker-worker/src/guest/shared/loopback-forwarder.ts'
import { readPosture } from '../../packages/docker-worker/src/guest/shared/posture.ts'

const wire = new BrokerWire(`${RUN_DIR}/${SOCKET_NAME}`)
let headers = {}
const post = (path, message) =>
  wire.call({ method: 'POST', path, headers, body: JSON.stringify(message), answerBytes: 65_536 })

const CLOCK = {
  name: 'clock',
  description: 'The time.',
  parameters: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
}
const ask = { model: 'of-the-guest', messages: [{ role: 'user', content: 'What time is it?' }] }
const withTools = { ...ask, tools: [{ type: 'function', function: CLOCK }], parallel_tool_calls: true }
const callsOf = (completion) =>
  completion.choices[0].message.tool_calls.map((call) => [call.function.name, call.function.arguments])

/** Everything that the client is asked for, in the order in which the test's model service answers. */
async function useClient(openai) {
  const chat = openai.chat.completions
  const text = (await chat.create(ask)).choices[0].message.content
  const zones = []
  const tool = {
    ...CLOCK,
    parse: JSON.parse,
    function: ({ zone }) => {
      zones.push(zone)
      return '12:00'
    },
  }
  const toolReply = await chat
    .runTools({ ...ask, tools: [{ type: 'function', function: tool }] })
    .finalContent()
  const parallel = callsOf(await chat.create(withTools))
  let streamed = ''
  let pieces = 0
  for await (const chunk of await chat.create({ ...ask, stream: true })) {
    streamed += chunk.choices[0]?.delta.content ?? ''
    pieces += 1
  }
  const streamedParallel = callsOf(await chat.stream(withTools).finalChatCompletion())
  return { text, zones, toolReply, parallel, streamed, pieces, streamedParallel }
}

const welcome = await post(WORKER_ROUTES.hello, {
  protocol: PROTOCOL_VERSION,
  mode: 'sealed',
  posture: readPosture(),
})
headers = { [WORKER_NONCE_HEADER]: welcome.body.workerNonce }
const { body: turn } = await wire.call({
  method: 'GET',
  path: WORKER_ROUTES.next,
  headers,
  answerBytes: 262_144,
})
await post(WORKER_ROUTES.ack, { turnId: turn.turnId })

const forwarder = await openLoopbackForwarder()
const address = forwarder.open(turn.nonce)
const openai = new OpenAI({
  apiKey: SEALED_PLACEHOLDER,
  baseURL: `${address.baseUrl}/v1`,
  maxRetries: 0,
})
let told
try {
  told = await useClient(openai)
} catch (error) {
  told = { failed: String(error), cause: String(error?.cause) }
}
const status = (path) => fetch(path, { method: 'POST', body: '{}' }).then((answer) => answer.status)
address.close()
told.afterwards = await status(`${address.baseUrl}/v1/chat/completions`)
told.elsewhere = await status(`http://127.0.0.1:${forwarder.port}/v1/chat/completions`)
told.outside = await fetch('http://192.0.2.1/').then(
  () => 'reached',
  () => 'not reached',
)
await post(WORKER_ROUTES.result, { turnId: turn.turnId, result: { ok: true, text: JSON.stringify(told) } })
process.exit(0)
