import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test, vi } from 'vitest'
import {
  freshStateDir,
  processesWith,
  receipts,
  replies,
  runDemo,
  turnDirectories,
  visit,
} from './run-demo.ts'

// Every test starts processes of its own.
vi.setConfig({ testTimeout: 90_000 })

const root = process.getuid?.() === 0
const PROCESS = ['--driver', 'process']

function start(stateDir = freshStateDir()) {
  return runDemo([...PROCESS, '--state', stateDir], { stateDir })
}

describe('the demo on plain processes', () => {
  test('every channel and speaker pays with its own key, and one without key is refused', async () => {
    await using demo = start()
    const page = visit(await demo.address)
    const seen = await page.events(
      (events) => replies(events).length === 5,
      async () => {
        expect(await page.say('demo:alpha', 'u-cleo', 'hello')).toBe(202)
        expect(await page.say('demo:beta', 'u-cleo', 'hello')).toBe(202)
        expect(await page.say('demo:team', 'u-ann', 'hello')).toBe(202)
        expect(await page.say('demo:team', 'u-ben', 'hello')).toBe(202)
        expect(await page.say('demo:nokey', 'u-cleo', 'hello')).toBe(202)
      },
    )
    expect(seen[0]?.data.driver).toEqual({ kind: 'process', isolation: 'none' })
    const paid = receipts(seen).flatMap(({ payments }) => payments.map(({ rule }: { rule: string }) => rule))
    expect(paid.sort()).toEqual([
      'channel demo:alpha',
      'channel demo:beta',
      'channel demo:team, speaker u-ann',
      'channel demo:team, speaker u-ben',
    ])
    const prints = receipts(seen).flatMap(({ payments }) =>
      payments.map((one: { fingerprint: string }) => one.fingerprint),
    )
    expect(new Set(prints).size).toBe(4)
    expect(receipts(seen).find(({ channel }) => channel === 'demo:nokey')).toMatchObject({
      ok: false,
      category: 'credential',
      payments: [],
      refusals: { credential_missing: 1 },
    })
    const said = replies(seen).map(({ text }) => text)
    expect(said.filter((text) => text.startsWith('Hello Ann!'))).toHaveLength(1)
    expect(said.filter((text) => text.startsWith('Hello Ben!'))).toHaveLength(1)
    expect(demo.output()).toContain('NO sandbox')
    if (root) expect(demo.output()).toContain('uid 64200, gid 64200, never as root')
  })

  test('a key that is changed in its file is used by the next call', async () => {
    await using demo = start()
    const page = visit(await demo.address)
    const payer = async (channel: string) => {
      const seen = await page.events(
        (events) => replies(events).length === 1,
        () => page.say(channel, 'u-cleo', 'hello'),
      )
      return receipts(seen)[0].payments[0].fingerprint as string
    }
    const [alpha, beta] = [await payer('demo:alpha'), await payer('demo:beta')]
    expect(alpha).not.toBe(beta)
    const keys = join(demo.stateDir, 'keys')
    copyFileSync(join(keys, 'beta.key'), join(keys, 'alpha.key'))
    expect(await payer('demo:alpha')).toBe(beta)
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    '%s in the middle of turns leaves nothing',
    async (signal) => {
      await using demo = start()
      const page = visit(await demo.address)
      const others = () => processesWith(demo.stateDir, demo.child.pid)
      for (let n = 0; n < 10; n += 1) await page.say('demo:alpha', 'u-cleo', `hello ${n}`)
      await expect.poll(others, { interval: 5 }).not.toEqual([])
      demo.child.kill(signal)
      expect(await demo.exited).toBe(0)
      expect(others()).toEqual([])
      expect(turnDirectories(demo.stateDir)).toEqual([])
      expect(demo.output()).toMatch(/Stopped\.\n$/)
      expect((await fetch(await demo.address).catch(() => 'gone')) as unknown).toBe('gone')
    },
  )

  test('a second demo in the same directory is refused', async () => {
    await using demo = start()
    await demo.address
    const second = runDemo([...PROCESS, '--state', demo.stateDir])
    expect(await second.exited).toBe(1)
    expect(second.output()).toContain(demo.stateDir)
    expect(second.output()).not.toMatch(/\n\s+at /)
  })

  test.skipIf(!root)(
    'a state directory that the worker cannot reach is refused with the command that mends it',
    async () => {
      using dir = tempDir()
      await using demo = start(join(dir.path, 's'))
      expect(await demo.exited).toBe(1)
      expect(demo.output()).toContain(`run: chmod o+x ${dir.path}.`)
    },
  )
})

describe('the command line', () => {
  const run = async (args: readonly string[], env?: Record<string, string>) => {
    const demo = runDemo(args, env === undefined ? {} : { env })
    return { code: await demo.exited, output: demo.output() }
  }

  test('--help is printed', async () => {
    expect(await run(['--help'])).toMatchObject({ code: 0, output: expect.stringContaining('demo --check') })
  })

  test('an unknown flag is refused with a sentence', async () => {
    expect(await run(['--verbose'])).toEqual({ code: 2, output: 'There is no flag --verbose. See --help.\n' })
  })

  test('an engine that was named and is not there is refused, never a plain process', async () => {
    const stateDir = freshStateDir()
    const env = { SANDBOX_DOCKER_SOCKET: '/nowhere/engine.sock' }
    const { code, output } = await run(['--state', stateDir], env)
    rmSync(stateDir, { recursive: true, force: true })
    expect(code).toBe(1)
    expect(output).toContain('there is no socket /nowhere/engine.sock')
    expect(output).not.toContain('page')
  })

  test('keys explain names the rule and no key', async () => {
    await using demo = start()
    await demo.address
    const where = ['--channel', 'demo:team', '--speaker', 'u-ann', '--state', demo.stateDir]
    const { code, output } = await run(['keys', 'explain', ...where])
    expect({ code, output }).toEqual({
      code: 0,
      output:
        'demo:team, speaker u-ann: the rule for channel demo:team, speaker u-ann chooses file:./ann.key, which leads to a key.\n',
    })
    expect(existsSync(join(demo.stateDir, 'keys', 'ann.key'))).toBe(true)
    expect((await run(['keys', 'check', '--state', demo.stateDir])).code).toBe(0)
  })

  test('keys check without a key file is refused', async () => {
    const { code, output } = await run(['keys', 'check', '--state', '/nowhere'])
    expect(code).toBe(1)
    expect(output).toContain('/nowhere/keys/keys.json')
  })
})
