import type { CallEvent } from '@sandbox/broker'
import type { TurnEvent } from '@sandbox/roundtable-plugin'
import { expect, test } from 'vitest'
import { type Explanation, Ledger, type Receipt } from './ledger.ts'

const ann = { id: 'u-ann', name: 'Ann' }
const turn = (turnId: string, more: Partial<TurnEvent> = {}): TurnEvent => ({
  turnId,
  channel: 'demo:team',
  speaker: ann,
  state: 'admitted',
  driver: 'docker',
  durationMs: 0,
  ...more,
})
const call = (turnId: string, more: Partial<CallEvent> = {}): CallEvent => ({
  callId: 'c',
  turnId,
  scope: { channel: 'demo:team', speaker: ann },
  route: 'model',
  status: 200,
  reason: 'ok',
  requestBytes: 1,
  answerBytes: 1,
  durationMs: 1,
  droppedFields: [],
  ...more,
})
const told: Explanation = { rule: 'channel demo:team, speaker u-ann', source: 'env:ANN', fingerprint: 'f1' }

test('adds up who paid, calls, tools, tokens and refusals of a turn', () => {
  const ledger = new Ledger({ explain: () => told })
  const seen: Receipt[] = []
  const end = ledger.onChange((receipt) => seen.push(receipt))
  ledger.onTurn(turn('t1'))
  ledger.onCall(call('t1', { fingerprint: 'f1', usage: { inputTokens: 5, outputTokens: 2 } }))
  ledger.onCall(call('t1', { route: 'tool', name: 'clock' }))
  ledger.onCall(call('t1', { fingerprint: 'f1', status: 502, reason: 'reflection' }))
  ledger.onCall(call('t1', { route: 'unknown', status: 404, reason: 'not_found' }))
  ledger.onTurn(turn('t1', { state: 'settled', durationMs: 9, ok: false, category: 'broker', cause: 'why' }))
  expect(ledger.latest('demo:team')).toEqual({
    turnId: 't1',
    channel: 'demo:team',
    speaker: ann,
    driver: 'docker',
    state: 'settled',
    durationMs: 9,
    ok: false,
    category: 'broker',
    cause: 'why',
    payments: [{ fingerprint: 'f1', rule: told.rule, calls: 2 }],
    modelCalls: 2,
    toolCalls: ['clock'],
    refusals: { reflection: 1, not_found: 1 },
    tokens: { input: 5, output: 2 },
  })
  expect(seen).toHaveLength(6)
  end()
  ledger.onTurn(turn('t2'))
  expect(seen).toHaveLength(6)
})

test('names a rule only when it is the one whose key paid', () => {
  const ledger = new Ledger({ explain: () => told })
  ledger.onTurn(turn('t1'))
  ledger.onCall(call('t1', { fingerprint: 'another' }))
  expect(ledger.latest('demo:team')?.payments).toEqual([{ fingerprint: 'another', calls: 1 }])
})

test('a key file that cannot be read any more loses no payment', () => {
  const ledger = new Ledger({
    explain: () => {
      throw new TypeError('gone')
    },
  })
  ledger.onTurn(turn('t1'))
  ledger.onCall(call('t1', { fingerprint: 'f1' }))
  expect(ledger.latest('demo:team')?.payments).toEqual([{ fingerprint: 'f1', calls: 1 }])
})

test('calls of another turn, of none, and of the worker desk do not count', () => {
  const ledger = new Ledger({ explain: () => told })
  ledger.onTurn(turn('t1'))
  const before = ledger.latest('demo:team')
  ledger.onCall(call('t0', { fingerprint: 'f1' }))
  ledger.onCall(call('t1', { route: 'worker', name: 'next' }))
  const { scope: _, turnId: __, ...loose } = call('t1')
  ledger.onCall(loose)
  expect(ledger.latest('demo:team')).toBe(before)
})

test('keeps the last turns, not all', () => {
  const ledger = new Ledger({ explain: () => told })
  for (let n = 0; n < 300; n += 1) ledger.onTurn(turn(`t${n}`))
  expect(ledger.recent()).toHaveLength(200)
  expect(ledger.recent().at(-1)?.turnId).toBe('t299')
})
