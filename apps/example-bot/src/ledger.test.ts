import type { CallEvent } from '@sandbox/broker'
import type { CredentialReceipt } from '@sandbox/credential-scope'
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
const none = '0000000000000000'
const POSTURE: NonNullable<TurnEvent['posture']> = {
  runtime: 'test',
  uid: 0,
  gid: 0,
  groups: [],
  capabilities: {
    inheritable: none,
    permitted: none,
    effective: none,
    bounding: '00000000000001ff',
    ambient: none,
  },
  noNewPrivs: true,
  seccomp: 2,
  interfaces: ['lo', 'eth0'],
  routes: [],
  rootReadOnly: true,
  mounts: [{ target: '/workspace', type: 'ext4', options: 'rw,nosuid' }],
  environment: [],
  namespaces: [],
  limits: {
    memoryBytes: 1,
    swapBytes: 0,
    cpus: 1,
    pids: 64,
    openFiles: 1,
    fileBytes: 1,
    coreBytes: 0,
    tmpBytes: 1,
  },
}
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
    at: expect.stringMatching(/^\d{4}-.*Z$/),
    driver: 'docker',
    state: 'settled',
    steps: [
      { state: 'admitted', afterMs: 0 },
      { state: 'settled', afterMs: 9 },
    ],
    durationMs: 9,
    ok: false,
    category: 'broker',
    cause: 'why',
    payments: [{ fingerprint: 'f1', rule: told.rule, source: told.source, calls: 2 }],
    calls: [{ tokens: 7 }, { name: 'clock' }, { reason: 'reflection' }, { route: 'unknown' }].map((part) =>
      expect.objectContaining(part),
    ),
    modelCalls: 2,
    toolCalls: ['clock'],
    refusals: { reflection: 1, not_found: 1 },
    tokens: { input: 5, output: 2 },
    cost: null,
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

const chosen = (more: Partial<CredentialReceipt> = {}): CredentialReceipt => ({
  version: 1,
  time: '2026-01-01T00:00:00.000Z',
  channel: 'demo:team',
  speakerId: ann.id,
  rule: 'the rule that chose',
  source: 'file:./ann.key',
  fingerprint: 'f1',
  outcome: 'ok',
  ...more,
})

test('a key is told when it is chosen, before the provider answers, and the receipt names its rule', () => {
  const ledger = new Ledger({ explain: () => told })
  ledger.onTurn(turn('t1'))
  ledger.onReceipt(chosen(), { receiptId: 'r', callId: 'c' })
  expect(ledger.latest('demo:team')?.key).toMatchObject({ outcome: 'ok', rule: 'the rule that chose' })
  expect(ledger.latest('demo:team')?.payments).toEqual([])
  ledger.onCall(call('t1', { fingerprint: 'f1' }))
  expect(ledger.latest('demo:team')?.payments).toMatchObject([{ rule: 'the rule that chose' }])
})

test('a receipt of somebody else, or after the end, changes no turn', () => {
  const ledger = new Ledger({ explain: () => told })
  ledger.onTurn(turn('t1'))
  ledger.onReceipt(chosen({ speakerId: 'u-ben' }), { receiptId: 'r', callId: 'c' })
  ledger.onReceipt(chosen({ channel: 'demo:other' }), { receiptId: 'r', callId: 'c' })
  ledger.onTurn(turn('t1', { state: 'settled', ok: true }))
  ledger.onReceipt(chosen(), { receiptId: 'r', callId: 'c' })
  expect(ledger.latest('demo:team')).not.toHaveProperty('key')
})

test('cost is tokens times price, and not known once a model without a price answered', () => {
  const prices = { currency: 'USD', models: { dear: { input: 2, output: 10 } } }
  const ledger = new Ledger({ explain: () => told, prices })
  const usage = { inputTokens: 500_000, outputTokens: 100_000 }
  ledger.onTurn(turn('t1'))
  expect(ledger.latest('demo:team')?.cost).toBe(0)
  ledger.onCall(call('t1', { model: 'dear', usage }))
  ledger.onCall(call('t1', { model: 'dear', usage }))
  expect(ledger.latest('demo:team')?.cost).toBe(4)
  ledger.onCall(call('t1', { model: 'constructor', usage }))
  expect(ledger.latest('demo:team')?.cost).toBeNull()
})

test('what the worker showed of its walls is kept from the event that tells it', () => {
  const ledger = new Ledger({ explain: () => told })
  ledger.onTurn(turn('t1', { state: 'bound', workerId: 'abc', warm: true, posture: POSTURE }))
  ledger.onTurn(turn('t1', { state: 'settled', ok: true }))
  expect(ledger.latest('demo:team')).toMatchObject({ workerId: 'abc', warm: true })
  expect(ledger.latest('demo:team')?.posture?.filter(({ holds }) => !holds)).toEqual([
    { label: 'No network', holds: false, detail: 'eth0' },
    { label: 'No capabilities', holds: false, detail: 'bounding set: 1ff' },
    { label: 'Not root', holds: false, detail: 'uid 0, gid 0' },
  ])
})

test('all calls count, the last ones are kept', () => {
  const ledger = new Ledger({ explain: () => told })
  ledger.onTurn(turn('t1'))
  for (let n = 0; n < 100; n += 1) {
    ledger.onCall(call('t1', { callId: `c${n}`, route: 'tool', name: 'x'.repeat(16_000) }))
  }
  expect(ledger.latest('demo:team')?.toolCalls).toHaveLength(100)
  expect(JSON.stringify(ledger.recent()).length).toBeLessThan(32_000)
  expect(
    ledger
      .latest('demo:team')
      ?.calls.map(({ callId }) => callId)
      .at(0),
  ).toBe('c60')
})
