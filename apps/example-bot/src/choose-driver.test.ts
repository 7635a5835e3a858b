import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { chooseDriver } from './choose-driver.ts'
import { BotError } from './errors.ts'

async function engine(path: string, listener: RequestListener): Promise<AsyncDisposable> {
  const server = createServer(listener)
  await new Promise<void>((done) => server.listen(path, done))
  return {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

const ping: RequestListener = (request, response) =>
  response.writeHead(request.url === '/_ping' ? 200 : 404).end('OK')

describe('choosing a driver', () => {
  test('containers when an engine answers', async () => {
    using dir = tempDir()
    const usualSocket = join(dir.path, 'e.sock')
    await using _engine = await engine(usualSocket, ping)
    const want = { kind: 'docker', isolation: 'container', engineSocket: usualSocket }
    expect(await chooseDriver({ driver: 'auto', usualSocket })).toEqual(want)
    expect(
      await chooseDriver({ driver: 'docker', engineSocket: usualSocket, usualSocket: '/nowhere' }),
    ).toEqual(want)
  })

  test('a process when it is asked for, also beside an engine', async () => {
    using dir = tempDir()
    const usualSocket = join(dir.path, 'e.sock')
    await using _engine = await engine(usualSocket, ping)
    expect(await chooseDriver({ driver: 'process', usualSocket })).toMatchObject({
      kind: 'process',
      isolation: 'none',
    })
  })

  test('a process by itself only when nobody named an engine or an image, and with the reason', async () => {
    using dir = tempDir()
    const usualSocket = join(dir.path, 'e.sock')
    expect(await chooseDriver({ driver: 'auto', usualSocket })).toEqual({
      kind: 'process',
      isolation: 'none',
      reason: `no container engine: there is no socket ${usualSocket}`,
    })
  })

  test.each([
    ['--driver docker', { driver: 'docker' as const }, 'Containers were asked for with --driver docker'],
    ['an image', { driver: 'auto' as const, image: 'mine:1' }, 'The image mine:1 was asked for'],
    [
      'a named engine',
      { driver: 'auto' as const, engineSocket: '/nowhere/e.sock' },
      'The engine at /nowhere/e.sock',
    ],
  ])('%s and no engine is refused, never a process', async (_, asked, sentence) => {
    using dir = tempDir()
    const refused = chooseDriver({ ...asked, usualSocket: join(dir.path, 'e.sock') })
    await expect(refused).rejects.toThrow(sentence)
    await expect(refused).rejects.toThrow('there is no socket')
    await expect(refused).rejects.toThrow('--driver process')
    await expect(refused).rejects.toSatisfy((error) => BotError.isInstance(error) && error.code === 'engine')
  })

  test('a socket that is no engine, a file, and one that hangs up are no engines', async () => {
    using dir = tempDir()
    const [web, hangs, file] = ['w.sock', 'h.sock', 'f'].map((name) => join(dir.path, name)) as [
      string,
      string,
      string,
    ]
    await using _web = await engine(web, (_, response) => response.writeHead(404).end())
    await using _hangs = await engine(hangs, (request) => request.socket.destroy())
    writeFileSync(file, '')
    const reason = async (usualSocket: string) => {
      const place = await chooseDriver({ driver: 'auto', usualSocket })
      return place.kind === 'process' ? place.reason : 'docker'
    }
    expect(await reason(web)).toContain('is no container engine')
    expect(await reason(hangs)).toMatch(/closes without an answer|nothing answers/)
    expect(await reason(file)).toMatch(/nothing answers on .* \(E/)
  })

  test('can be called off', async () => {
    using dir = tempDir()
    const usualSocket = join(dir.path, 'e.sock')
    const off = new AbortController()
    await using _engine = await engine(usualSocket, () => off.abort())
    expect(await chooseDriver({ driver: 'auto', usualSocket, signal: off.signal })).toMatchObject({
      kind: 'process',
    })
  })
})
