import { describe, expect, test } from 'vitest'
import { REPLY_TEXT_CHARS, SPEAKER_CHARS, TURN_TEXT_CHARS } from './limits.ts'
import { isSealedTurn, readSealedResult, type SealedTurn } from './turn.ts'

const turn: SealedTurn = {
  protocol: 1,
  turnId: 't1',
  nonce: 'n'.repeat(22),
  remainingMs: 1000,
  text: 'hello',
  speaker: { id: 'u1', name: 'Ann' },
  model: 'm',
  timeZone: 'UTC',
  reset: false,
  tools: [{ name: 'clock', description: 'Tells the time', parameters: { type: 'object' } }],
  mcp: [],
}

describe('turn', () => {
  test('RL-11 a turn with every field is one', () => {
    expect(isSealedTurn(turn)).toBe(true)
    expect(isSealedTurn({ ...turn, prompt: 'Be brief.' })).toBe(true)
  })

  test.each([
    ['no nonce', { ...turn, nonce: undefined }],
    ['a short nonce', { ...turn, nonce: 'short' }],
    ['RL-08 a text that is too long', { ...turn, text: 'x'.repeat(TURN_TEXT_CHARS + 1) }],
    [
      'RL-08 a speaker name that is too long',
      { ...turn, speaker: { id: 'u', name: 'x'.repeat(SPEAKER_CHARS + 1) } },
    ],
    [
      'RL-08 a text of too many marks on one letter',
      { ...turn, text: `e${'\u0301'.repeat(TURN_TEXT_CHARS)}` },
    ],
    ['a tool name with a capital', { ...turn, tools: [{ ...turn.tools[0], name: 'Clock' }] }],
    ['negative time left', { ...turn, remainingMs: -1 }],
    ['an array', [turn]],
    ['null', null],
  ])('WA-01 %s is no turn', (_what, value) => {
    expect(isSealedTurn(value)).toBe(false)
  })
})

describe('result', () => {
  test('DD-11 only the known fields are kept', () => {
    const posted = { turnId: 't1', extra: 1, result: { ok: true, text: 'hi', key: 'sk', privileged: true } }
    expect(readSealedResult(posted)).toEqual({ turnId: 't1', result: { ok: true, text: 'hi' } })
  })

  test('W-75 a failure carries its code, W-73 the files that were set aside', () => {
    const result = { ok: false, text: '', code: 'model_call_limit', quarantined: ['memory.json'] }
    expect(readSealedResult({ turnId: 't1', result })).toEqual({ turnId: 't1', result })
  })

  test.each([
    ['an unknown failure code', { ok: false, text: '', code: 'pwned' }],
    ['a file name of its own choice', { ok: true, text: '', quarantined: ['/etc/passwd'] }],
    ['DD-11 a text that is too long', { ok: true, text: 'x'.repeat(REPLY_TEXT_CHARS + 1) }],
    ['DD-11 a text of too many emoji', { ok: true, text: '😀'.repeat(REPLY_TEXT_CHARS / 2 + 1) }],
    ['a truthy ok', { ok: 1, text: '' }],
    ['no text', { ok: true }],
  ])('%s is refused', (_what, result) => {
    expect(readSealedResult({ turnId: 't1', result })).toBeUndefined()
  })
})
