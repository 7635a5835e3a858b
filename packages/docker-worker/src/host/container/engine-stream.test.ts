import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { attachOutput, createDemux, waitNextExit } from './engine-stream.ts'

function frame(stream: number, text: string): Buffer {
  const head = Buffer.from([stream, 0, 0, 0, 0, 0, 0, 0])
  head.writeUInt32BE(Buffer.byteLength(text), 4)
  return Buffer.concat([head, Buffer.from(text)])
}

describe('createDemux', () => {
  test('takes frames apart however they are cut', () => {
    const whole = Buffer.concat([frame(1, 'one'), frame(2, ''), frame(2, 'two'), frame(1, 'three')])
    for (let size = 1; size <= whole.length; size++) {
      let seen = ''
      const take = createDemux(
        (chunk) => {
          seen += Buffer.from(chunk).toString()
        },
        () => expect.fail('broken'),
      )
      for (let at = 0; at < whole.length; at += size) take(whole.subarray(at, at + size))
      expect(seen).toBe('onetwothree')
    }
  })

  test('stops at a head that is none', () => {
    let broken = 0
    const take = createDemux(
      () => expect.fail('payload'),
      () => {
        broken += 1
      },
    )
    take(Buffer.from('HTTP/1.1 200 OK'))
    take(frame(1, 'later'))
    expect(broken).toBe(1)
  })
})

/** An engine that answers every request with `answer`, then hangs up when told to. */
async function rawEngine(
  answer: string | Buffer,
): Promise<{ path: string; hangUp(): void } & AsyncDisposable> {
  const dir = tempDir()
  const path = join(dir.path, 'engine.sock')
  const sockets = new Set<import('node:net').Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => socket.write(answer))
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  const hangUp = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    path,
    hangUp,
    async [Symbol.asyncDispose]() {
      hangUp()
      await new Promise((resolve) => server.close(resolve))
      dir[Symbol.dispose]()
    },
  }
}

const OPEN = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'

describe('waitNextExit', () => {
  test('T59 an engine that dies while we wait is seen at once', async () => {
    await using engine = await rawEngine(OPEN)
    const pending = await waitNextExit({ socketPath: engine.path, version: 'v1.41' }, 'abc')
    engine.hangUp()
    expect(await pending.code).toBeUndefined()
  })

  test('reads the code', async () => {
    await using engine = await rawEngine(`${OPEN}13\r\n{"StatusCode": 137}\r\n0\r\n\r\n`)
    const pending = await waitNextExit({ socketPath: engine.path, version: 'v1.41' }, 'abc')
    expect(await pending.code).toBe(137)
  })

  test('W-61 another status is a rejection that carries it', async () => {
    await using engine = await rawEngine('HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}')
    const waiting = waitNextExit({ socketPath: engine.path, version: 'v1.41' }, 'abc')
    await expect(waiting).rejects.toMatchObject({ statusCode: 404 })
  })
})

describe('attachOutput', () => {
  const UPGRADED = 'HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n'

  test('takes the bytes that came with the answer, and ends with the connection', async () => {
    await using engine = await rawEngine(Buffer.concat([Buffer.from(UPGRADED), frame(1, 'first')]))
    const seen: string[] = []
    const { promise, resolve } = withResolvers()
    const attached = await attachOutput({ socketPath: engine.path, version: 'v1.41' }, 'abc', (chunk) => {
      seen.push(Buffer.from(chunk).toString())
      resolve()
    })
    await promise
    engine.hangUp()
    await attached.ended
    expect(seen.join('')).toBe('first')
  })

  test('W-61 another status is a rejection that carries it', async () => {
    await using engine = await rawEngine('HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}')
    const attaching = attachOutput({ socketPath: engine.path, version: 'v1.41' }, 'abc', () => {})
    await expect(attaching).rejects.toMatchObject({ statusCode: 409 })
  })
})

function withResolvers(): { promise: Promise<void>; resolve(): void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve: () => resolve() }
}
