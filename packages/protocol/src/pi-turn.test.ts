import { describe, expect, test } from 'vitest'
import { PI_ERROR_CHARS, PI_PROGRESS_CHARS, PI_TEXT_CHARS, REPLY_TEXT_CHARS } from './limits.ts'
import {
  isPiTurn,
  type PiTurn,
  piTurnPieces,
  piTurnProblem,
  readPiProgress,
  readPiResult,
} from './pi-turn.ts'
import { isPiThinkingLevel } from './thinking.ts'

const turn: PiTurn = {
  protocol: 1,
  turnId: 't-1',
  nonce: 'n'.repeat(64),
  remainingMs: 1000,
  text: 'hello',
  speaker: { id: 'u1', name: 'Ann' },
  profile: 'default',
  thinking: 'low',
  model: 'm',
  timeZone: 'UTC',
  attachments: [],
  images: [],
  mcp: [],
}

describe('a turn', () => {
  test('WP-06 with every field is one, and what is unknown does no harm', () => {
    expect(piTurnProblem(turn)).toBeUndefined()
    const whole = {
      ...turn,
      prompt: 'Be brief.',
      memory: 'Ann likes tea.',
      attachments: [{ name: 'a.pdf', mimeType: 'application/pdf', bytes: 7 }],
      images: [{ mimeType: 'image/png', data: 'AAAA' }],
      mcp: [{ name: 'notes-1', tools: [{ name: 'notes.search', description: '', parameters: {} }] }],
      later: true,
    }
    expect(isPiTurn(whole)).toBe(true)
  })
  test.each([
    ['turnId', { turnId: '..' }],
    ['turnId', { turnId: 'a/b' }],
    ['turnId', { turnId: 'x'.repeat(65) }],
    ['nonce', { nonce: 'short' }],
    ['thinking', { thinking: 'max' }],
    ['profile', { profile: 'a b' }],
    ['text', { text: 'x'.repeat(PI_TEXT_CHARS + 1) }],
    ['memory', { memory: 'x'.repeat(PI_TEXT_CHARS + 1) }],
    ['prompt', { prompt: 'x'.repeat(PI_TEXT_CHARS + 1) }],
    ['speaker', { speaker: { id: 'x'.repeat(257), name: '' } }],
    ['attachments', { attachments: [{ name: 'a/b', bytes: 1 }] }],
    ['images', { images: [{ mimeType: 'image/png', data: '' }] }],
    ['images', { images: [{ mimeType: 'text/html', data: 'AAAA' }] }],
    ['mcp', { mcp: [{ name: 'a b', tools: [] }] }],
    ['remainingMs', { remainingMs: -1 }],
  ])('W-52 PR-10 with a wrong %s is none, and the problem names it, without its value', (field, changes) => {
    const problem = piTurnProblem({ ...turn, ...changes })
    expect(problem).toContain(field)
    expect(problem).not.toContain('x'.repeat(60))
  })
})

test('W-31 a turn with large images is checked piece by piece', () => {
  const data = Buffer.alloc(300_000, 7).toString('base64')
  const pieces = piTurnPieces({ ...turn, images: [{ mimeType: 'image/png', data }] })
  let yields = 0
  for (let step = pieces.next(); !step.done; step = pieces.next()) yields += 1
  expect(yields).toBeGreaterThan(4)
})

describe('a result', () => {
  const posted = (result: object) => readPiResult({ turnId: 't-1', result })
  const good = { ok: true, text: 'hi', files: [{ name: 'a.txt', data: 'AAAA' }], leftOut: 1 }
  test('PB-38 only the known fields are kept', () => {
    const result = { ...good, extra: 1, files: [{ name: 'a.txt', data: 'AAAA', path: '/etc' }] }
    expect(posted(result)).toEqual({ turnId: 't-1', result: good })
    const failed = { ok: false, code: 'model_failed', error: 'overloaded' }
    expect(posted({ ...failed, text: 'no' })).toEqual({ turnId: 't-1', result: failed })
  })
  test.each([
    ['no text', { ...good, text: '' }],
    ['a text that is too long', { ...good, text: 'x'.repeat(REPLY_TEXT_CHARS + 1) }],
    ['a text of too many emoji', { ...good, text: '😀'.repeat(REPLY_TEXT_CHARS / 2 + 1) }],
    ['no files', { ok: true, text: 'hi' }],
    ['a file with an unsafe name', { ...good, files: [{ name: '../a', data: 'AAAA' }] }],
    ['a file that is no base64', { ...good, files: [{ name: 'a', data: 'A' }] }],
    ['eleven files', { ...good, files: Array(11).fill(good.files[0]) }],
    ['a truthy ok', { ...good, ok: 1 }],
    ['an unknown code', { ok: false, code: 'pwned', error: '' }],
    ['an error that is too long', { ok: false, code: 'internal', error: 'x'.repeat(PI_ERROR_CHARS + 1) }],
  ])('PB-38 %s is refused', (_what, result) => {
    expect(posted(result)).toBeUndefined()
  })
})

test('progress is a bounded piece with its place', () => {
  const piece = { turnId: 't-1', seq: 0, at: 0, text: 'Hel' }
  expect(readPiProgress({ ...piece, more: 1 })).toEqual(piece)
  for (const bad of [{ seq: -1 }, { at: 0.5 }, { text: 'x'.repeat(PI_PROGRESS_CHARS + 1) }, { turnId: '' }]) {
    expect(readPiProgress({ ...piece, ...bad })).toBeUndefined()
  }
})

test('W-52 the levels are four', () => {
  for (const level of ['low', 'medium', 'high', 'xhigh']) expect(isPiThinkingLevel(level)).toBe(true)
  for (const other of ['max', 'none', '', undefined, ['low']]) expect(isPiThinkingLevel(other)).toBe(false)
})
