import { expect, test } from 'vitest'
import {
  type CompactionRequest,
  readCompactionReport,
  readCompactionRequest,
  readCompactionResult,
} from './compaction.ts'
import { PI_ERROR_CHARS, PI_SUMMARY_CHARS } from './limits.ts'

const request: CompactionRequest = {
  reason: 'threshold',
  tokensBefore: 300_000,
  firstKeptEntryId: 'e-9',
  isSplitTurn: false,
  messagesToSummarize: [{ role: 'user' }],
  turnPrefixMessages: [],
  keptMessages: [],
  readFiles: ['a.txt'],
  modifiedFiles: [],
}

test('CP-09 a request is rebuilt from its known fields; messages pass unchanged', () => {
  const whole = { ...request, previousSummary: 'before', customInstructions: 'short' }
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }]
  expect(readCompactionRequest({ ...whole, messagesToSummarize: messages, extra: 1 })).toEqual({
    ...whole,
    messagesToSummarize: messages,
  })
  for (const bad of [
    { reason: 'whim' },
    { tokensBefore: -1 },
    { firstKeptEntryId: '' },
    { firstKeptEntryId: 'x'.repeat(257) },
    { keptMessages: [{ content: 'no role' }] },
    { messagesToSummarize: ['text'] },
    { readFiles: [1] },
    { isSplitTurn: 'no' },
  ]) {
    expect(readCompactionRequest({ ...request, ...bad })).toBeUndefined()
  }
})

test('CP-10 W-82 a result has a summary of a bounded length and counts that are not negative', () => {
  const result = { firstKeptEntryId: 'e-9', summary: 'They spoke.', tokensBefore: 9, tokensAfter: 1 }
  expect(readCompactionResult({ ...result, extra: 1 })).toEqual(result)
  expect(readCompactionResult({ ...result, details: { a: 1 } })).toEqual({ ...result, details: { a: 1 } })
  for (const bad of [
    { summary: '' },
    { summary: 'x'.repeat(PI_SUMMARY_CHARS + 1) },
    { tokensAfter: -1 },
    { tokensBefore: 1.5 },
    { details: 'none' },
    { details: [] },
  ]) {
    expect(readCompactionResult({ ...result, ...bad })).toBeUndefined()
  }
})

test('CP-11 a report is one of three, with texts of a bounded length', () => {
  const done = { kind: 'compacted', reason: 'manual', engine: 'pi', tokensBefore: 9, tokensAfter: 1 }
  expect(readCompactionReport({ ...done, extra: 1 })).toEqual(done)
  expect(readCompactionReport({ ...done, contextAfter: 3 })).toEqual({ ...done, contextAfter: 3 })
  const failed = { kind: 'failed', reason: 'overflow', error: 'x'.repeat(PI_ERROR_CHARS) }
  expect(readCompactionReport(failed)).toEqual(failed)
  const bypassed = { kind: 'bypassed', reason: 'x'.repeat(1000), tokensBefore: 1 }
  expect(readCompactionReport(bypassed)).toEqual(bypassed)
  for (const bad of [
    { ...failed, error: 'x'.repeat(PI_ERROR_CHARS + 1) },
    { ...bypassed, reason: 'x'.repeat(1001) },
    { ...done, engine: '' },
    { ...done, kind: 'other' },
  ]) {
    expect(readCompactionReport(bad)).toBeUndefined()
  }
})
