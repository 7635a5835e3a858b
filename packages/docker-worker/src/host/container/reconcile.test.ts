import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type EngineAnswer, scriptedEngine } from '../../testing/scripted-engine.ts'
import { connectEngine } from './docker-client.ts'
import { removeContainer, sweepInstall } from './reconcile.ts'

/** Answers the removals of one container in this order, the last one for ever. */
function removals(...statuses: number[]): (call: string) => EngineAnswer | undefined {
  return (call) =>
    call.startsWith('DELETE ')
      ? { status: statuses.length > 1 ? (statuses.shift() ?? 0) : (statuses[0] ?? 0) }
      : undefined
}

describe('removeContainer', () => {
  test.each([[[204]], [[404]], [[500, 204]], [[500, 503, 204]], [[409]]])(
    'DD-13 W-61 statuses %j mean gone',
    async (statuses) => {
      const wanted = statuses.length
      await using scripted = await scriptedEngine(removals(...statuses))
      await removeContainer(await connectEngine(scripted.path), 'abc')
      expect(scripted.calls.filter((call) => call === 'DELETE /containers/abc')).toHaveLength(wanted)
    },
  )

  test('T52 an engine that refuses three times is a failure, and says what to look at', async () => {
    await using scripted = await scriptedEngine(removals(403))
    await expect(removeContainer(await connectEngine(scripted.path), 'abc')).rejects.toMatchObject({
      code: 'remove_failed',
      message: expect.stringMatching(/may still run.*403.*docker inspect abc/),
    })
    expect(scripted.calls.filter((call) => call.startsWith('DELETE'))).toHaveLength(3)
  })

  test('an engine that is gone is a failure', async () => {
    const scripted = await scriptedEngine(removals(204))
    const engine = await connectEngine(scripted.path)
    await scripted[Symbol.asyncDispose]()
    await expect(removeContainer(engine, 'abc')).rejects.toMatchObject({ code: 'remove_failed' })
  })
})

test('T50 a sweep believes labels, not what the engine filtered', async () => {
  const container = (Id: string, install: string, worker: string) => ({
    Id,
    Labels: { 'sandbox.install': install, 'sandbox.worker': worker },
  })
  const body = [
    container('one', 'ours', 'w1'),
    container('two', 'theirs', 'w2'),
    container('three', 'ours', 'w3'),
  ]
  await using scripted = await scriptedEngine((call) => {
    if (call === 'GET /containers/json') return { status: 200, body }
    return call.startsWith('DELETE') ? { status: 204 } : undefined
  })
  const engine = await connectEngine(scripted.path)
  expect(await sweepInstall(engine, 'ours', new Set(['w3']))).toEqual(['w1'])
  expect(scripted.calls.filter((call) => call.startsWith('DELETE'))).toEqual(['DELETE /containers/one'])
})

describe('connectEngine', () => {
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  test('T56 the socket is the only endpoint, whatever the environment says', async () => {
    await using scripted = await scriptedEngine(() => undefined)
    for (const host of ['tcp://127.0.0.1:9', 'ssh://nobody@127.0.0.1', 'unix:///nowhere.sock']) {
      vi.stubEnv('DOCKER_HOST', host)
      const engine = await connectEngine(scripted.path)
      expect(await engine.image('x')).toBeUndefined()
    }
  })

  test.each([
    ['1.41', '1.12', 'v1.41'],
    ['1.52', '1.44', 'v1.44'],
    ['1.44', undefined, 'v1.41'],
  ])('an engine of API %s, oldest %s, is spoken to in %s', async (ApiVersion, MinAPIVersion, version) => {
    const body = { ApiVersion, MinAPIVersion }
    await using scripted = await scriptedEngine((call) =>
      call === 'GET /version' ? { status: 200, body } : undefined,
    )
    expect((await connectEngine(scripted.path)).address.version).toBe(version)
  })

  test('an engine that is too old is refused', async () => {
    const body = { ApiVersion: '1.40' }
    await using scripted = await scriptedEngine(() => ({ status: 200, body }))
    await expect(connectEngine(scripted.path)).rejects.toMatchObject({ code: 'engine_unsuitable' })
  })

  test('no socket, and a file in its place, are told apart from an engine that is down', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'docker.sock')
    await expect(connectEngine(path)).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('There is no engine at'),
    })
    writeFileSync(path, '')
    await expect(connectEngine(path)).rejects.toMatchObject({
      code: 'engine_unreachable',
      message: expect.stringContaining('not a socket'),
    })
  })
})

test('T50 a worker that starts while the engine makes its list is left alone', async () => {
  const live = new Set<string>()
  const Labels = { 'sandbox.install': 'ours', 'sandbox.worker': 'new' }
  await using scripted = await scriptedEngine((call) => {
    if (call !== 'GET /containers/json') return undefined
    live.add('new')
    return { status: 200, body: [{ Id: 'one', Labels }] }
  })
  expect(await sweepInstall(await connectEngine(scripted.path), 'ours', live)).toEqual([])
  expect(scripted.calls.filter((call) => call.startsWith('DELETE'))).toEqual([])
})
