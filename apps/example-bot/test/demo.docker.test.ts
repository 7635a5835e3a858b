import { request } from 'node:http'
import { dockerGate, dockerSocket } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { freshStateDir, receipts, replies, runDemo, turnDirectories, visit } from './run-demo.ts'

interface Container {
  readonly Id: string
  readonly Mounts: readonly { readonly Source: string }[]
}

/** All containers, running or not, that see a directory below `path`. */
function containersOf(path: string): Promise<string[]> {
  return new Promise((done, fail) => {
    const asked = request(
      { socketPath: dockerSocket(), path: '/containers/json?all=1', agent: false },
      async (answer) => {
        let text = ''
        for await (const chunk of answer) text += chunk
        const all = JSON.parse(text) as Container[]
        done(
          all
            .filter(({ Mounts }) => Mounts.some(({ Source }) => Source.startsWith(path)))
            .map(({ Id }) => Id),
        )
      },
    )
    asked.on('error', fail)
    asked.end()
  })
}

describe.skipIf(!dockerGate())('the demo on an engine', () => {
  function start() {
    const stateDir = freshStateDir()
    return runDemo(['--driver', 'docker', '--state', stateDir], {
      stateDir,
      env: { SANDBOX_DOCKER_SOCKET: dockerSocket() ?? '' },
    })
  }

  test('two speakers of one channel pay with a key each, from containers that are gone afterwards', async () => {
    await using demo = start()
    const page = visit(await demo.address)
    const seen = await page.events(
      (events) => replies(events).length === 3,
      async () => {
        await page.say('demo:team', 'u-ann', 'hello')
        await page.say('demo:team', 'u-ben', 'hello')
        await page.say('demo:nokey', 'u-cleo', 'hello')
      },
    )
    expect(seen[0]?.data.driver).toEqual({ kind: 'docker', isolation: 'container' })
    expect(demo.output()).not.toContain('NO sandbox')
    const paid = receipts(seen).map(({ channel, driver, payments }) => ({
      channel,
      driver,
      rule: payments[0]?.rule,
    }))
    expect(paid).toHaveLength(3)
    expect(paid).toEqual(
      expect.arrayContaining([
        { channel: 'demo:team', driver: 'docker', rule: 'channel demo:team, speaker u-ann' },
        { channel: 'demo:team', driver: 'docker', rule: 'channel demo:team, speaker u-ben' },
        { channel: 'demo:nokey', driver: 'docker', rule: undefined },
      ]),
    )
    demo.child.kill('SIGINT')
    expect(await demo.exited).toBe(0)
    expect(await containersOf(demo.stateDir)).toEqual([])
    expect(turnDirectories(demo.stateDir)).toEqual([])
  }, 120_000)

  test('Ctrl-C in the middle of turns leaves no container and no run directory', async () => {
    await using demo = start()
    const page = visit(await demo.address)
    for (let n = 0; n < 5; n += 1) await page.say('demo:alpha', 'u-cleo', `hello ${n}`)
    await expect.poll(() => containersOf(demo.stateDir), { interval: 5, timeout: 10_000 }).not.toEqual([])
    demo.child.kill('SIGINT')
    expect(await demo.exited).toBe(0)
    expect(await containersOf(demo.stateDir)).toEqual([])
    expect(turnDirectories(demo.stateDir)).toEqual([])
  }, 120_000)
})
