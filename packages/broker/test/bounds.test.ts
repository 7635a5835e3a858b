import { request } from 'node:http'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { chatText } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { BodyBudget } from '../src/index.ts'
import { callHeaders } from './support/guest.ts'
import { openRig, type Rig, turnInput } from './support/rig.ts'

const MIB = 1024 * 1024

/** One call with a body of that size, by node's own client. Resolves with status and text. */
function call(rig: Rig, nonce: string, bytes: number): Promise<{ status: number; text: string }> {
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(bytes) }] })
  return new Promise((resolve, reject) => {
    const headers = { ...callHeaders(nonce), 'content-length': body.length }
    const sent = request(
      { socketPath: rig.path, path: '/v1/chat/completions', method: 'POST', headers, agent: false },
      async (answer) => {
        const chunks: Buffer[] = []
        for await (const chunk of answer) chunks.push(chunk)
        resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(chunks).toString() })
      },
    )
    sent.on('error', reject)
    sent.end(body)
  })
}

describe('W-31 one budget for bodies [call:bounded]', () => {
  test('many large bodies at once stay inside of it, and each is answered', async () => {
    const bodyBudget = new BodyBudget({ bytes: 32 * MIB })
    let inside = 0
    let most = 0
    const rigs: Rig[] = []
    const calls: Promise<{ status: number }>[] = []
    for (let client = 0; client < 12; client += 1) {
      const rig = await openRig({ bodyBudget })
      rigs.push(rig)
      rig.upstream.script = async () => {
        inside += 1
        most = Math.max(most, inside)
        await new Promise((done) => setImmediate(done))
        expect(bodyBudget.heldBytes).toBeLessThanOrEqual(32 * MIB)
        inside -= 1
        return chatText('ok')
      }
      calls.push(call(rig, rig.broker.bind(turnInput()).nonce, 6 * MIB))
    }
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(12).fill(200))
    // Each counts twice, and 28 MiB are for large ones.
    expect(most).toBeLessThanOrEqual(2)
    expect(bodyBudget).toMatchObject({ heldBytes: 0, waiting: 0 })
    for (const rig of rigs) await rig[Symbol.asyncDispose]()
  })

  test('a small call is answered while large ones hold all that they may', async () => {
    const bodyBudget = new BodyBudget({ bytes: 16 * MIB })
    await using large = await openRig({ bodyBudget })
    await using small = await openRig({ bodyBudget })
    const reached = new Promise<() => void>((resolve) => {
      large.upstream.script = () => new Promise((done) => resolve(() => done(chatText('late'))))
    })
    const first = call(large, large.broker.bind(turnInput()).nonce, 6 * MIB)
    const go = await reached
    expect(bodyBudget.heldBytes).toBeGreaterThan(12 * MIB)
    expect(await call(small, small.broker.bind(turnInput()).nonce, 1000)).toMatchObject({ status: 200 })
    go()
    expect(await first).toMatchObject({ status: 200 })
  })

  test('a body that no memory is for is answered 413 before it is read', async () => {
    await using rig = await openRig({ bodyBudget: new BodyBudget({ bytes: 16 * MIB }) })
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    guest.send({
      path: '/v1/chat/completions',
      headers: { ...callHeaders(nonce), 'content-length': String(20 * MIB) },
    })
    const answer = await guest.answer()
    expect(answer).toMatchObject({ status: 413, json: { error: { code: 'body_too_large' } } })
    expect(answer?.text).toContain(`${7 * MIB} bytes`)
    expect(rig.upstream.seen).toHaveLength(0)
  })

  test('a guest that leaves while its body waits holds nothing', async () => {
    const bodyBudget = new BodyBudget({ bytes: 16 * MIB })
    await using rig = await openRig({ bodyBudget })
    await using other = await openRig({ bodyBudget })
    const held = await bodyBudget.share().reserve(6 * MIB, new AbortController().signal)
    const guest = rig.guest()
    guest.send({
      path: '/v1/chat/completions',
      headers: { ...callHeaders(rig.broker.bind(turnInput()).nonce), 'content-length': String(6 * MIB) },
    })
    await expect.poll(() => bodyBudget.waiting).toBe(1)
    guest[Symbol.dispose]()
    expect(await rig.reported(({ route }) => route === 'model')).toMatchObject({ reason: 'aborted' })
    expect(bodyBudget.waiting).toBe(0)
    held.release()
    expect(await call(other, other.broker.bind(turnInput()).nonce, 6 * MIB)).toMatchObject({ status: 200 })
  })

  test('a stream gives the memory back when it begins, not when it ends', async () => {
    const bodyBudget = new BodyBudget({ bytes: 32 * MIB })
    await using rig = await openRig({ bodyBudget })
    const reached = new Promise<() => void>((resolve) => {
      rig.upstream.script = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        resolve(() => response.end('data: [DONE]\n\n'))
      }
    })
    const answer = call(rig, rig.broker.bind(turnInput()).nonce, 6 * MIB)
    const go = await reached
    await expect.poll(() => bodyBudget.heldBytes).toBe(0)
    go()
    expect(await answer).toEqual({ status: 200, text: 'data: [DONE]\n\n' })
    expect(await rig.reported(() => true)).toMatchObject({ streamed: true, model: 'host-model' })
  })

  test.skipIf('bun' in process.versions)('while a stream runs, nothing of its request is kept', async () => {
    setFlagsFromString('--expose-gc')
    const gc: () => void = runInNewContext('gc')
    await using rig = await openRig()
    let end = () => {}
    const begun = new Promise<void>((resolve) => {
      rig.upstream.script = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
        end = () => response.end('data: [DONE]\n\n')
        resolve()
      }
    })
    const answer = call(rig, rig.broker.bind(turnInput()).nonce, 24 * MIB)
    await begun
    rig.upstream.seen.length = 0
    await expect
      .poll(() => {
        gc()
        return process.memoryUsage().arrayBuffers
      })
      .toBeLessThan(12 * MIB)
    end()
    expect((await answer).status).toBe(200)
  })

  test('LS-05 a body that crumbles is refused, however little it is, and its connection goes', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const head = Object.entries({ host: 'broker', ...callHeaders(nonce) }).map(([k, v]) => `${k}: ${v}\r\n`)
    guest.write(`POST /v1/chat/completions HTTP/1.1\r\n${head.join('')}transfer-encoding: chunked\r\n\r\n`)
    guest.write('1\r\n \r\n'.repeat(20_000))
    expect(await guest.answer()).toMatchObject({ status: 400, json: { error: { code: 'body_invalid' } } })
    await guest.closed
    expect(rig.upstream.seen).toEqual([])
  })
  test('an option that is no budget is refused', async () => {
    await expect(openRig({ bodyBudget: { bytes: 1 } as unknown as BodyBudget })).rejects.toThrow('bodyBudget')
  })
})

describe('W-33 messages that spend nothing of a turn [call:bounded]', () => {
  test('a loop of them is answered 429 after a burst; calls of the turn are not', async () => {
    await using rig = await openRig()
    const { nonce } = rig.broker.bind(turnInput())
    using guest = rig.guest()
    const statuses: number[] = []
    let last = await guest.call({ method: 'GET', path: '/worker/next' })
    for (let times = 0; times < 1000 && last.status !== 429; times += 1) {
      statuses.push(last.status)
      last = await guest.call(
        times % 2 === 0 ? { path: '/nowhere' } : { method: 'GET', path: '/worker/next' },
      )
    }
    expect(statuses.length).toBeGreaterThanOrEqual(100)
    expect(new Set(statuses)).toEqual(new Set([403, 404]))
    expect(last).toMatchObject({ status: 429, json: { error: { code: 'too_fast' } } })
    expect(last.headers).toMatchObject({ 'retry-after': '1' })
    expect(last.headers).not.toHaveProperty('x-should-retry')
    const model = {
      path: '/model',
      headers: callHeaders(nonce),
      body: { messages: [{ role: 'user', content: 'x' }] },
    }
    expect((await guest.call(model)).status).toBe(200)
  })
})
