import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Receipt } from '../ledger.ts'
import { AuditLog, type AuditOptions } from './audit-log.ts'

let dir: ReturnType<typeof tempDir>
let path: string
let problems: string[]
const open: AuditLog[] = []

beforeEach(() => {
  dir = tempDir()
  path = join(dir.path, 'audit', 'audit.jsonl')
  problems = []
})
afterEach(() => {
  for (const log of open.splice(0)) log.close()
  dir[Symbol.dispose]()
})

function openLog(more: Partial<AuditOptions> = {}): AuditLog {
  const log = new AuditLog({
    path,
    onProblem: (problem) => problems.push(problem),
    now: () => new Date(1_800_000_000_000),
    ...more,
  })
  open.push(log)
  return log
}

const lines = (file = path) =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

const receipt: Receipt = {
  turnId: 't1',
  channel: 'room:a',
  speaker: { id: 'u-ann', name: 'Ann' },
  at: '2027-01-15T08:00:00.000Z',
  driver: 'docker',
  state: 'settled',
  steps: [],
  durationMs: 1234,
  ok: true,
  cause: 'what a worker said',
  payments: [{ fingerprint: 'f00d', rule: 'channel room:a', source: 'env:K', calls: 2 }],
  calls: [],
  modelCalls: 2,
  toolCalls: ['host_clock'],
  refusals: { body_invalid: 1 },
  tokens: { input: 10, output: 5 },
  cost: null,
}

describe('the audit log', () => {
  test('a turn is one line: who, where, which rule, which key, tokens, outcome; no words', () => {
    openLog().turn(receipt, 'sealed')
    expect(lines()).toEqual([
      {
        time: '2027-01-15T08:00:00.000Z',
        run: expect.stringMatching(/^[0-9a-f]{12}$/),
        event: 'turn',
        turnId: 't1',
        channel: 'room:a',
        speakerId: 'u-ann',
        speakerName: 'Ann',
        mode: 'sealed',
        driver: 'docker',
        outcome: 'ok',
        durationMs: 1234,
        keys: receipt.payments,
        modelCalls: 2,
        toolCalls: 1,
        refusals: { body_invalid: 1 },
        tokens: { input: 10, output: 5 },
        cost: null,
      },
    ])
  })

  test('with content, words are written, and what looks like a key is not', () => {
    const log = openLog({ content: true })
    log.turn({ ...receipt, ok: false, category: 'worker' }, 'pi')
    log.write({
      event: 'message',
      channel: 'room:a',
      text: 'my key is\nsk-ant-api03-abcdefghijklmnopqrstuvwxyz0123',
    })
    const [turn, message] = lines()
    expect(turn).toMatchObject({ outcome: 'worker', toolCalls: ['host_clock'], cause: 'what a worker said' })
    expect(message.text).toMatch(/^my key is\n/)
    expect(message.text).not.toContain('abcdefghijklm')
  })

  test('the file and its directory are for this account alone, and lines are added to what is there', () => {
    openLog().write({ event: 'start' })
    openLog().write({ event: 'stop' })
    expect(lines().map(({ event }) => event)).toEqual(['start', 'stop'])
    expect(new Set(lines().map(({ run }) => run)).size).toBe(2)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(join(dir.path, 'audit')).mode & 0o777).toBe(0o700)
  })

  test('a large file is put aside, the oldest goes, and no line is lost or cut', () => {
    const log = openLog({ maxBytes: 4096, keep: 2 })
    for (let n = 0; n < 100; n += 1) log.write({ event: 'start', n, padding: 'x'.repeat(100) })
    expect(readdirSync(join(dir.path, 'audit')).sort()).toEqual([
      'audit.jsonl',
      'audit.jsonl.1',
      'audit.jsonl.2',
    ])
    const kept = [`${path}.2`, `${path}.1`, path].flatMap((file) => lines(file).map(({ n }) => n))
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, index) => 100 - kept.length + index))
    for (const name of ['', '.1', '.2']) {
      expect(statSync(path + name).size).toBeLessThanOrEqual(4096)
      expect(statSync(path + name).mode & 0o777).toBe(0o600)
    }
  })

  test('a disk that fails is told once, ends nothing, and the record goes on when it is back', () => {
    const log = openLog({ maxBytes: 4096, keep: 0 })
    log.write({ event: 'start', padding: 'x'.repeat(4000) })
    rmSync(join(dir.path, 'audit'), { recursive: true })
    writeFileSync(join(dir.path, 'audit'), 'in the way')
    for (let n = 0; n < 3; n += 1) log.write({ event: 'start', padding: 'x'.repeat(4000) })
    expect(problems).toEqual([expect.stringContaining('turns go on without a record')])
    rmSync(join(dir.path, 'audit'))
    mkdirSync(join(dir.path, 'audit'), { mode: 0o700 })
    log.write({ event: 'stop' })
    expect(lines().map(({ event }) => event)).toEqual(['stop'])
  })

  test('what is no private file of ours is refused at the start', () => {
    openLog().close()
    chmodSync(path, 0o644)
    expect(() => openLog()).toThrow(`Run: chmod 600 ${path}`)
    rmSync(path)
    symlinkSync('/dev/null', path)
    expect(() => openLog()).toThrow(/cannot be opened \(ELOOP\)/)
  })
})
