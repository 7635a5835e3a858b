import type { AddressInfo } from 'node:net'
import * as pi from '@earendil-works/pi-coding-agent'
import { type PiTurn, PROTOCOL_VERSION } from '@sandbox/protocol'
import { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { PiAgent } from './agent.ts'
import { loadContent } from './content.ts'
import { Outbox } from './outbox.ts'
import { ProgressReporter } from './progress.ts'
import { runPiTurn } from './run-pi-turn.ts'
import { TurnCalls } from './turn-calls.ts'

const { createServer } = process.getBuiltinModule('node:http')

const TURN: PiTurn = {
  protocol: PROTOCOL_VERSION,
  turnId: 'warm-up',
  nonce: 'no-host-knows-this-nonce',
  remainingMs: 60_000,
  text: 'Hello',
  speaker: { id: 'nobody', name: 'Nobody' },
  profile: 'default',
  thinking: 'low',
  model: 'claude-sonnet-4-5',
  timeZone: 'UTC',
  attachments: [],
  images: [],
  mcp: [],
}

const USAGE = { input_tokens: 1, output_tokens: 1 }
const ANSWER = [
  {
    type: 'message_start',
    message: {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      usage: USAGE,
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: USAGE },
  { type: 'message_stop' },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join('')

/**
 * Plays one turn against an answer that is always the same, without a host: everything that a turn needs is compiled
 * then, for the code cache of an image. Throws a {@link GuestError} `internal` when the agent does not get through it.
 */
export async function warmUp(workspace: string): Promise<void> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(ANSWER)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const kit = { pi: { ...pi }, saveToOutbox: () => '', contributionExtension: () => () => {} }
    const content = (profile: string) => loadContent('/dev/null', profile, kit)
    const agent = new PiAgent({ workspace, hostTools: [], content })
    const waiting = await agent.open({ model: TURN.model, profile: TURN.profile, mcp: [] })
    const over = new AbortController()
    const calls = new TurnCalls({ wire: new BrokerWire('/dev/null'), ...TURN, over: over.signal })
    const modelUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/anthropic`
    const outbox = new Outbox(workspace, TURN.turnId)
    const atHand = { turn: TURN, modelUrl, refusedForGood: () => true, calls, outbox }
    const progress = new ProgressReporter({ turnId: TURN.turnId, send: async () => {} })
    const { outcome } = await runPiTurn({ waiting, atHand, progress, over: over.signal })
    if (!outcome.ok)
      throw new GuestError('internal', `the agent does not get through a turn: ${outcome.error}`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
}
