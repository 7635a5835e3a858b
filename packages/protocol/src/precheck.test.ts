import { describe, expect, test } from 'vitest'
import { isPrecheckJob, readPrecheckResult } from './precheck.ts'

const JOB = {
  protocol: 1,
  turnId: 'r-1',
  remainingMs: 60_000,
  script: 'export default () => ({ wake: false })',
  firedAt: '2026-03-01T08:00:00.000Z',
  timeZone: 'Europe/Berlin',
  today: '2026-03-01',
  schedule: { id: 's-1', title: 'Morning' },
  servers: [{ server: 'My-Notes', tools: ['search.notes'] }],
}

describe('PC-10 what the worker of a precheck is handed', () => {
  test('a job', () => {
    expect(isPrecheckJob(JOB)).toBe(true)
    expect(isPrecheckJob({ ...JOB, script: 'x'.repeat(8000) })).toBe(true)
  })
  test.each([
    { script: '' },
    { script: 'x'.repeat(8001) },
    { script: '🎉'.repeat(4001) },
    { firedAt: '2026-03-01' },
    { today: '1.3.2026' },
    { schedule: { id: 's-1' } },
    { servers: [{ server: 'a b', tools: [] }] },
    { servers: [{ server: 'a', tools: ['no/slash'] }] },
    { turnId: '' },
    { protocol: '1' },
  ])('W-93 %j is none', (changes) => {
    expect(isPrecheckJob({ ...JOB, ...changes })).toBe(false)
  })
})

describe('what it hands in', () => {
  test.each([
    { ok: true, wake: false },
    { ok: true, wake: false, note: 'nothing new' },
    { ok: true, wake: true, context: 'two new notes' },
    { ok: false, error: 'the script has no default export' },
  ])('%j, known fields only', (result) => {
    expect(readPrecheckResult({ turnId: 'r-1', result: { ...result, more: 1 }, x: 1 })).toEqual({
      turnId: 'r-1',
      result,
    })
  })
  test.each([
    undefined,
    { ok: true },
    { ok: true, wake: true },
    { ok: true, wake: true, context: 7 },
    { ok: true, wake: false, note: 'x'.repeat(32_001) },
    { ok: true, wake: true, context: '🎉'.repeat(16_001) },
    { ok: false },
    { ok: false, error: 'x'.repeat(1001) },
    { ok: 'yes', wake: false },
  ])('%j is no result', (result) => {
    expect(readPrecheckResult({ turnId: 'r-1', result })).toBeUndefined()
  })
})
