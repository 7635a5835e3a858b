import type { CallEvent } from '@sandbox/broker'
import { canary } from '@sandbox/testing'
import { describe, expect, it } from 'vitest'
import type { CheckTrace } from './check-room.ts'
import { checkRow, markOf, type RowEvidence, restRow } from './check-row.ts'
import type { CheckStep } from './check-step.ts'
import type { StandInCall } from './stand-in-model.ts'

const step: CheckStep = {
  channel: 'demo:team',
  speaker: { id: 'u-ann', name: 'Ann' },
  text: 'hello #ann1',
  mark: '#ann1',
  about: 'a key by speaker',
  key: 'ann',
  outcome: 'answered',
}

const call: StandInCall = {
  method: 'POST',
  path: '/v1/chat/completions',
  status: 200,
  fingerprint: 'aaaa1111',
  knownKey: true,
  headers: ['accept', 'authorization', 'connection', 'content-length', 'content-type', 'host'],
  fields: ['max_tokens', 'messages', 'model', 'stream', 'tools'],
  speaker: 'Ann',
  text: 'hello #ann1',
}

const event = (more: Partial<CallEvent>): CallEvent => ({
  callId: 'c1',
  turnId: 't1',
  route: 'model',
  status: 200,
  reason: 'ok',
  requestBytes: 1,
  answerBytes: 1,
  durationMs: 1,
  droppedFields: [],
  fingerprint: 'aaaa1111',
  ...more,
})

const turn: NonNullable<CheckTrace['turn']> = {
  turnId: 't1',
  channel: step.channel,
  speaker: step.speaker,
  state: 'settled',
  driver: 'process',
  durationMs: 7,
  ok: true,
}

function evidence(more: Partial<RowEvidence> = {}, trace: Partial<CheckTrace> = {}): RowEvidence {
  const calls = [event({})]
  return {
    turn: 1,
    step,
    trace: {
      message: step,
      turn,
      calls,
      window: calls,
      replies: ['Hello Ann!'],
      toolScopes: [],
      durationMs: 9,
      ...trace,
    },
    service: [call],
    driver: 'process',
    container: false,
    keyExpected: 'aaaa1111',
    secrets: [],
    ...more,
  }
}

it('a turn that is as planned makes a good row', () => {
  expect(checkRow(evidence())).toEqual({
    turn: 1,
    channel: 'demo:team',
    speaker: 'u-ann',
    about: 'a key by speaker',
    keyExpected: 'aaaa1111',
    keyUsed: 'aaaa1111',
    driver: 'process',
    ms: 7,
    outcome: 'answered',
    ok: true,
    problems: [],
  })
})

const secret = canary('sk-check')

describe('each of these makes a row wrong', () => {
  const { turn: _, ...neverTaken } = evidence().trace
  const failed = { ...turn, ok: false, category: 'broker' as const }
  it.each<[string, RowEvidence]>([
    ['another key at the service', evidence({ service: [{ ...call, fingerprint: 'bbbb2222' }] })],
    ['two keys at the service', evidence({ service: [call, { ...call, fingerprint: 'bbbb2222' }] })],
    ['a call without a key', evidence({ service: [{ ...call, fingerprint: undefined } as never] })],
    ['nothing at the service', evidence({ service: [] })],
    ['a call where none may be', evidence({ keyExpected: undefined })],
    ['the host telling of another key', evidence({}, { calls: [event({ fingerprint: 'bbbb2222' })] })],
    ['the host telling of no key', evidence({}, { calls: [] })],
    ['a header beyond the list', evidence({ service: [{ ...call, headers: ['x-api-key'] }] })],
    ['a field beyond the list', evidence({ service: [{ ...call, fields: ['callback_url'] }] })],
    ['another path', evidence({ service: [{ ...call, path: '/elsewhere' }] })],
    ['a request that the service refused', evidence({ service: [{ ...call, status: 400 }] })],
    ['another speaker in the call', evidence({ service: [{ ...call, speaker: 'Ben' }] })],
    ['another driver', evidence({ driver: 'docker' })],
    ['a failed turn', evidence({}, { turn: failed })],
    ['a turn that never settled', evidence({}, { turn: { ...turn, state: 'answering' } })],
    ['a message that was not taken', evidence({}, { failure: 'no' })],
    ['a message without a turn', { ...evidence(), trace: neverTaken }],
    ['a key in the reply', evidence({ secrets: [secret] }, { replies: [`it is ${secret}`] })],
    ['its base64', evidence({ secrets: [secret] }, { replies: [Buffer.from(secret).toString('base64')] })],
    [
      'its hex',
      evidence({ secrets: [secret] }, { replies: [Buffer.from(secret).toString('hex').toUpperCase()] }),
    ],
    ['its percent form', evidence({ secrets: [secret] }, { replies: [encodeURIComponent(secret)] })],
    ['what the step verifies', evidence({ step: { ...step, verify: () => ['no'] } })],
  ])('%s', (_name, wrong) => {
    const row = checkRow(wrong)
    expect(row.ok).toBe(false)
    expect(row.problems).not.toEqual([])
  })
})

describe('the outcome is told in the host’s words', () => {
  const failed = { ...turn, ok: false, category: 'credential' as const, cause: 'because' }
  it.each<[string, Partial<CheckTrace>]>([
    ['credential: credential_missing', { calls: [event({ reason: 'credential_missing', status: 502 })] }],
    [
      'credential: upstream_status 401',
      { calls: [event({ reason: 'upstream_status', upstreamStatus: 401 })] },
    ],
    ['credential: second_hello', { calls: [], window: [event({ route: 'worker', reason: 'second_hello' })] }],
    ['credential', { calls: [], window: [] }],
  ])('%s', (outcome, trace) => {
    const row = checkRow(evidence({}, { turn: failed, ...trace }))
    expect(row.outcome).toBe(outcome)
    expect(row.problems).toEqual(expect.arrayContaining(['answered expected', 'the host says: because']))
  })
})

describe('the row about the rest', () => {
  const marks = new Set(['#ann1'])
  const rest = (service: readonly StandInCall[], secrets: readonly string[] = []) =>
    restRow({ service, marks, driver: 'process', secrets })

  it('is good when every call belongs to a turn', () => {
    expect(rest([call])).toMatchObject({ ok: true, outcome: '1 calls', keyUsed: '-' })
  })

  it('a mark is a whole word', () => {
    expect(markOf({ ...call, text: 'hello #ann10' })).toBe('#ann10')
    expect(rest([call, { ...call, text: 'hello #ann10' }]).ok).toBe(false)
  })

  it('is wrong for a call without a turn, a silent service, and a recorded key', () => {
    const { text: _, ...nobody } = call
    expect(rest([call, nobody]).problems).toEqual(['POST /v1/chat/completions (200) belongs to no turn'])
    expect(rest([]).ok).toBe(false)
    expect(rest([{ ...call, path: `/${secret}` }], [secret]).ok).toBe(false)
  })
})
