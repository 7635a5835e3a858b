/**
 * A guest that brings the official `@anthropic-ai/sdk`, unchanged, behind the loopback forwarder. Says hello and takes
 * its turn as a Pi worker does; its answer is what the client got, as JSON.
 */
import Anthropic from '@anthropic-ai/sdk'
import {
  PI_PLACEHOLDER,
  PROTOCOL_VERSION,
  RUN_DIR,
  SOCKET_NAME,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
} from '@sandbox/protocol'
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
  input_schema: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
}
const question = [{ role: 'user', content: 'What time is it?' }]
const ask = { model: 'of-the-guest', max_tokens: 2_000, messages: question }
const failure = (error) => [error.status ?? 'in mid-stream', error.error?.error?.type]

/** Everything that the client is asked for, in the order in which the test's Messages service answers. */
async function useClient({ messages }) {
  const text = (await messages.create(ask)).content
  const counted = (await messages.countTokens({ model: ask.model, messages: question })).input_tokens
  const thinking = { type: 'adaptive' }
  const thoughts = []
  const stream = messages.stream({ ...ask, thinking }).on('thinking', (delta) => thoughts.push(delta))
  const streamed = (await stream.finalMessage()).content
  const called = (await messages.stream({ ...ask, tools: [CLOCK] }).finalMessage()).content
  const results = called
    .filter(({ type }) => type === 'tool_use')
    .map(({ id, input }) => ({ type: 'tool_result', tool_use_id: id, content: `noon in ${input.zone}` }))
  const history = [...question, { role: 'assistant', content: called }, { role: 'user', content: results }]
  const toolReply = (await messages.create({ ...ask, tools: [CLOCK], messages: history })).content
  const failures = []
  for (let call = 0; call < 6; call += 1) {
    const asked = call < 5 ? messages.create(ask) : messages.stream(ask).finalMessage()
    failures.push(await asked.then(() => 'answered', failure))
  }
  return { text, counted, thoughts: thoughts.join(''), streamed, called, toolReply, failures }
}

const welcome = await post(WORKER_ROUTES.hello, {
  protocol: PROTOCOL_VERSION,
  mode: 'pi',
  posture: readPosture(),
})
headers = { [WORKER_NONCE_HEADER]: welcome.body.workerNonce }
const next = { method: 'GET', path: WORKER_ROUTES.next, headers, answerBytes: 262_144 }
const { body: turn } = await wire.call(next)
await post(WORKER_ROUTES.ack, { turnId: turn.turnId })

const forwarder = await openLoopbackForwarder()
const address = forwarder.open(turn.nonce)
const anthropic = new Anthropic({
  authToken: PI_PLACEHOLDER,
  apiKey: null,
  baseURL: `${address.baseUrl}/anthropic`,
  maxRetries: 0,
})
let told
try {
  told = await useClient(anthropic)
} catch (error) {
  told = { failed: String(error), cause: String(error?.cause) }
}
const result = { ok: true, text: JSON.stringify(told), files: [] }
await post(WORKER_ROUTES.result, { turnId: turn.turnId, result })
process.exit(0)
