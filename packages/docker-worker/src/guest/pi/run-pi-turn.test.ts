import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type PiTurn, PROTOCOL_VERSION } from '@sandbox/protocol'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { BrokerWire } from '../shared/broker-wire.ts'
import { PiAgent } from './agent.ts'
import { Outbox } from './outbox.ts'
import { ProgressReporter } from './progress.ts'
import { runPiTurn } from './run-pi-turn.ts'
import { TurnCalls } from './turn-calls.ts'

const turn: PiTurn = {
  protocol: PROTOCOL_VERSION,
  turnId: 'turn-1',
  nonce: 'turn-nonce-0123456789',
  remainingMs: 60_000,
  text: 'Hello',
  speaker: { id: 'u-ann', name: 'Ann' },
  profile: 'default',
  thinking: 'low',
  model: 'claude-sonnet-4-5',
  timeZone: 'Europe/Berlin',
  attachments: [],
  images: [],
  mcp: [],
}

test('a turn that the host no longer wants is ended: its model call is closed, its session spent', async () => {
  using workspace = tempDir()
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const agent = new PiAgent({
    workspace: workspace.path,
    hostTools: [],
    content: async () => ({
      modelLike: undefined,
      prompt: undefined,
      skills: new Map(),
      brokerTools: undefined,
      toolNames: [],
      extensions: [],
    }),
  })
  const waiting = await agent.open({ model: turn.model, profile: turn.profile, mcp: [] })
  const over = new AbortController()
  const wire = new BrokerWire('/nowhere')
  const running = runPiTurn({
    waiting,
    atHand: {
      turn,
      modelUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/anthropic`,
      refusedForGood: () => false,
      calls: new TurnCalls({ wire, nonce: turn.nonce, remainingMs: turn.remainingMs, over: over.signal }),
      outbox: new Outbox(workspace.path, turn.turnId),
    },
    progress: new ProgressReporter({ turnId: turn.turnId, send: async () => {} }),
    over: over.signal,
  })
  const [request] = await once(server, 'request')
  request.socket.on('error', () => {})
  const closed = new Promise((resolve) => request.socket.once('close', resolve))
  over.abort()
  expect(await running).toMatchObject({ settled: true, outcome: { ok: false, code: 'internal' } })
  await closed
  expect(() => waiting.slot.get()).toThrow('no turn is at hand')
  server.close()
})
