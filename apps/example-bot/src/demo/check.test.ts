import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, it } from 'vitest'
import { type CheckBotOptions, type CheckReport, runCheck } from './check.ts'
import { openCheckBot } from './check-command.ts'
import { CHECK_CHANNELS } from './check-plan.ts'

const TIMEOUT_MS = 120_000

/** Plays the check on the real bot with the process driver, each of whose openings may be spoilt first. */
function play(
  spoil: (options: CheckBotOptions) => CheckBotOptions = (options) => options,
): Promise<CheckReport> {
  return runCheck({
    rounds: 1,
    openBot: (options) => openCheckBot({ driver: 'process' }, spoil(options), () => {}),
  })
}

function wrong(report: CheckReport): readonly string[] {
  return report.rows
    .filter(({ ok }) => !ok)
    .map(({ channel, speaker, about }) => `${channel} ${speaker}: ${about}`)
}

it(
  'CS-14 the whole plan on the real bot, worker and socket: every row as expected',
  async () => {
    const seen: number[] = []
    const report = await runCheck({
      rounds: 3,
      openBot: (options) => openCheckBot({ driver: 'process' }, options, () => {}),
      onRow: (_, done, total) => seen.push(total - done),
    })
    expect(report.rows.filter(({ ok }) => !ok)).toEqual([])
    expect(report.ok).toBe(true)
    expect(seen).toHaveLength(report.rows.length)
    expect(seen.at(-1)).toBe(0)
    const keys = new Set(report.rows.map(({ keyUsed }) => keyUsed).filter((key) => key !== '-'))
    expect(keys.size).toBe(8)
    expect(report.rows.map(({ turn }) => turn)).toEqual(
      [...report.rows.keys()].map((n) => (n + 1) % report.rows.length),
    )
    expect(report.rows.every(({ driver }) => driver === 'process')).toBe(true)
  },
  TIMEOUT_MS,
)

it(
  'a bot that pays everything with one key is seen',
  async () => {
    const report = await play((options) => {
      const path = join(options.keysPath, '..', 'one.json')
      const rules = CHECK_CHANNELS.map((channel) => ({ channel, key: 'file:./alpha.key' }))
      writeFileSync(path, JSON.stringify({ rules }), { mode: 0o600 })
      return { ...options, keysPath: path }
    })
    expect(report.ok).toBe(false)
    const good = report.rows.filter(({ ok, keyUsed }) => ok && keyUsed !== '-')
    expect([...new Set(good.map(({ keyUsed }) => keyUsed))]).toEqual([
      report.rows.find(({ channel }) => channel === 'demo:alpha')?.keyExpected,
    ])
    expect(wrong(report)).toEqual(
      expect.arrayContaining([
        'demo:beta u-cleo: a key by channel',
        'demo:team u-ben: a key by speaker',
        'demo:nokey u-cleo: a channel without a key',
        'demo:team u-dan: a speaker without a key',
        'demo:alpha u-cleo: the rule names another key',
        'demo:alpha u-cleo: the rule is gone',
      ]),
    )
  },
  TIMEOUT_MS,
)

it(
  'a bot that reads its keys once is seen',
  async () => {
    const report = await play((options) => {
      const path = join(options.keysPath, '..', 'first.json')
      if (!existsSync(path)) writeFileSync(path, readFileSync(options.keysPath), { mode: 0o600 })
      return { ...options, keysPath: path }
    })
    expect(wrong(report)).toEqual([
      'demo:alpha u-cleo: the rule names another key',
      'demo:alpha u-cleo: the key behind the rule changed',
      'demo:alpha u-cleo: the rule is gone',
    ])
  },
  TIMEOUT_MS,
)

it(
  'a hostile bundle that never ran, and a host that keeps its events to itself, are seen',
  async () => {
    const noBundle = await play(({ guestBundle: _, ...options }) => options)
    expect(wrong(noBundle)).toEqual(
      expect.arrayContaining([
        'demo:hostile u-mallory: hostile bundle: sends what it likes',
        'demo:hostile u-mallory: hostile bundle: a second hello',
      ]),
    )
    const silent = await play((options) => ({ ...options, onCall: () => {} }))
    expect(wrong(silent).length).toBe(silent.rows.length - 2)
  },
  TIMEOUT_MS,
)

it('a bot that cannot be opened rejects and leaves nothing behind', async () => {
  using dir = tempDir()
  const openBot = () => Promise.reject(new TypeError('not today'))
  await expect(runCheck({ openBot, parentDir: dir.path })).rejects.toThrow('not today')
  expect(readdirSync(dir.path)).toEqual([])
})

it(
  'a check that is called off rejects with the reason and leaves nothing behind',
  async () => {
    using dir = tempDir()
    // In a root shell, workers have an account of their own that must pass.
    chmodSync(dir.path, 0o711)
    const off = new AbortController()
    let closed = 0
    const openBot = async (options: CheckBotOptions) => {
      const bot = await openCheckBot({ driver: 'process' }, options, () => {})
      return {
        ...bot,
        close: async () => {
          await bot.close()
          closed += 1
        },
      }
    }
    const running = runCheck({
      openBot,
      parentDir: dir.path,
      signal: off.signal,
      onRow: (_, done) => {
        if (done === 2) off.abort(new TypeError('enough'))
      },
    })
    await expect(running).rejects.toThrow('enough')
    expect(closed).toBe(1)
    expect(readdirSync(dir.path)).toEqual([])
  },
  TIMEOUT_MS,
)
