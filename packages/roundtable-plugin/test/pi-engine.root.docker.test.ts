import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildImage } from '@sandbox/docker-worker'
import { dockerGate } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { CHANNEL, conversation, withTool } from './pi-agent-kit.ts'
import { hangAfterTool, IMAGE, kitOn, remembers } from './pi-docker-kit.ts'
import { until } from './pi-kit.ts'

/** Only root may start an engine of its own. */
const mayStartEngine =
  process.geteuid?.() === 0 && ['/usr/sbin/dockerd', '/usr/bin/dockerd'].some((path) => existsSync(path))

describe.skipIf(!dockerGate() || !mayStartEngine)('Pi turns on an engine that stops', () => {
  test('an engine that stops in mid-turn and comes back: words meanwhile, then the conversation goes on', async () => {
    using engine = privateEngine()
    await buildImage({ guest: 'pi', tag: IMAGE, engineSocket: engine.socket })
    await using kit = await kitOn(engine.socket)
    kit.renew('u-ann')
    expect(await kit.say('before')).toMatchObject({ ok: true })
    const hung = hangAfterTool(kit)
    const turn = kit.say('cut')
    await hung
    engine.stop()
    expect(await turn).toMatchObject({ ok: false, category: 'container' })
    expect(await kit.say('meanwhile')).toMatchObject({ ok: false, category: 'container', text: /safe place/ })
    engine.start()
    kit.service.answer = withTool
    expect(await kit.say('after')).toMatchObject({ ok: true, text: /answer to .*after/s })
    expect(remembers(kit, 'before') && remembers(kit, 'cut')).toBe(true)
    expect(conversation(kit.partyDir).length).toBeGreaterThan(6)
    await until(() => kit.runtime.status(CHANNEL).state === 'ready')
  }, 180_000)
})

function privateEngine() {
  const script = fileURLToPath(new URL('../../../scripts/engine.sh', import.meta.url))
  const dir = `/run/sbx-${randomBytes(3).toString('hex')}`
  const run = (verb: 'start' | 'stop') =>
    execFileSync(script, [verb, dir], { stdio: ['ignore', 'ignore', 'inherit'], timeout: 60_000 })
  run('start')
  return {
    socket: `${dir}/docker.sock`,
    start: () => run('start'),
    stop: () => run('stop'),
    [Symbol.dispose]() {
      run('stop')
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
