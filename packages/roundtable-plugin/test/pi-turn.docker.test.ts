import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildImage } from '@sandbox/docker-worker'
import { dockerGate, findSecret } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { containersOf, ENGINE, engineGet } from './engine.ts'
import { startHost } from './killed-host.ts'
import { CHANNEL, conversation, PEOPLE, sessionFiles, withTool } from './pi-agent-kit.ts'
import { enginePost, hangAfterTool, IMAGE, kitOn, nextKit, remembers } from './pi-docker-kit.ts'
import { type TappedDriver, tap } from './tapped-driver.ts'

const SECRETLESS = { tools: [], mcp: [] }

describe.skipIf(!dockerGate())('Pi turns on a real engine', () => {
  beforeAll(async () => {
    await buildImage({ guest: 'pi', tag: IMAGE, engineSocket: ENGINE })
  }, 180_000)

  test('[scope:own-key-only] [scope:no-fallback] [secret:not-in-guest-bytes] 20 turns of two speakers with tools and streams: every request has the right token, and none is found inside', async () => {
    let tapped: TappedDriver | undefined
    await using kit = await kitOn(ENGINE, (driver, directory) => {
      tapped = tap(driver, directory)
      return tapped
    })
    kit.renew('u-ann')
    kit.renew('u-bob')
    // The first answer does not end before a part of it was heard.
    const grown = Promise.withResolvers<void>()
    kit.service.beforeEnd = grown.promise
    const onProgress = ({ text }: { text: string }) => text.startsWith('answer to') && grown.resolve()
    for (let round = 0; round < 20; round += 1) {
      const speaker = [PEOPLE.ann, PEOPLE.bob, PEOPLE.bob, PEOPLE.ann][round % 4] as {
        id: string
        name: string
      }
      const before = kit.tokens.get(speaker.id)
      let after = before
      // A token that is refreshed in the middle of a turn is used by its next call.
      kit.service.answer = (call) => {
        if (round % 5 === 4 && call.toolResult === undefined) after = kit.renew(speaker.id)
        return withTool(call)
      }
      const seen = kit.service.calls.length
      const reply = await kit.say(`round ${round}`, { speaker, onProgress })
      expect(reply).toMatchObject({
        ok: true,
        text: new RegExp(`answer to .*round ${round}[^0-9].*${speaker.id} in`, 's'),
      })
      const used = kit.service.calls.slice(seen).map(({ authorization }) => authorization)
      expect(used).toEqual([`Bearer ${before}`, `Bearer ${after}`])
    }
    const carol = await kit.say('and me?', { speaker: { id: 'u-carol', name: 'Carol' } })
    expect(carol).toMatchObject({ ok: false, category: 'credential', text: /No key is set for you/ })
    expect(kit.service.calls).toHaveLength(40)
    expect(kit.everyToken).toHaveLength(6)

    const [id] = await containersOf(kit.installId)
    const inspected = (await engineGet(`/containers/${id}/json`)).body
    await kit.runtime.stop(CHANNEL)
    const { inward, outputs } = tapped as TappedDriver
    const files = filesBelow(kit.partyDir).map((path) => readFileSync(path))
    const all = Buffer.concat([...inward, ...outputs.map((text) => Buffer.from(text)), inspected, ...files])
    expect(all.length).toBeGreaterThan(100_000)
    for (const token of kit.everyToken) expect(findSecret(all, token)).toEqual([])
    expect(findSecret(all, 'u-ann in fake:team')).toContain('raw')
    expect(JSON.stringify(kit.lines)).not.toContain('sk-ant-oat01-')
    expect(await containersOf(kit.installId)).toEqual([])
  }, 60_000)

  test('W-51 PR-21 [worker:pi-gone-when-cut] a worker that is killed or stopped in mid-turn: the conversation is whole, and the next turn continues it', async () => {
    await using kit = await kitOn(ENGINE)
    kit.renew('u-ann')
    expect(await kit.say('before')).toMatchObject({ ok: true })
    const hung = hangAfterTool(kit)
    const turn = kit.say('cut')
    await hung
    const [id] = await containersOf(kit.installId)
    await enginePost(ENGINE, `/containers/${id}/kill`)
    expect(await turn).toMatchObject({ ok: false, category: 'container' })
    expect(conversation(kit.partyDir).length).toBeGreaterThan(4)
    kit.service.answer = withTool
    expect(await kit.say('after')).toMatchObject({ ok: true, text: /answer to .*after/s })
    expect(remembers(kit, 'before') && remembers(kit, 'cut')).toBe(true)
    expect(sessionFiles(kit.partyDir)).toHaveLength(1)
    expect(await containersOf(kit.installId)).toHaveLength(1)

    const again = hangAfterTool(kit)
    const stopped = kit.say('stopped')
    await again
    expect(await kit.runtime.stop(CHANNEL)).toBe(true)
    expect(await containersOf(kit.installId)).toEqual([])
    expect(await stopped).toMatchObject({ ok: false, category: 'stopped', text: 'Stopped.' })
  }, 60_000)

  test('T51 PR-21 a host that is killed in mid-turn: one container is left over and removed, and the next host continues', async () => {
    await using kit = await kitOn(ENGINE)
    const token = kit.renew('u-ann')
    expect(await kit.say('before')).toMatchObject({ ok: true })
    await kit.runtime.dispose()
    const hung = hangAfterTool(kit)
    const { driver: _, onTurn: __, logger: ___, tools: ____, oauthToken: _____, ...options } = kit.options
    const host = startHost(
      {
        ...options,
        ...SECRETLESS,
        driver: 'docker',
        image: IMAGE,
        engineSocket: ENGINE,
        oauthToken: token,
        turn: { channel: CHANNEL, profile: 'default', speaker: PEOPLE.ann, text: 'cut' },
      },
      'pi-host-program.ts',
    )
    await Promise.race([hung, host.ended])
    host.child.kill('SIGKILL')
    await host.ended
    expect(await containersOf(kit.installId)).toHaveLength(1)
    kit.service.answer = withTool
    await using next = await nextKit(kit)
    await next.runtime.check()
    expect(await containersOf(kit.installId)).toEqual([])
    const reply = await next.runtime.runTurn({
      channel: CHANNEL,
      profile: 'default',
      speaker: PEOPLE.ann,
      text: 'after',
    })
    expect(reply).toMatchObject({ ok: true, text: /answer to .*after/s })
    expect(remembers(kit, 'before') && remembers(kit, 'cut')).toBe(true)
    expect(conversation(kit.partyDir).length).toBeGreaterThan(6)
    expect(sessionFiles(kit.partyDir)).toHaveLength(1)
  }, 90_000)
})

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((name) => join(directory, name))
    .filter((path) => lstatSync(path).isFile())
}
