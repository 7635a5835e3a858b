import { limits, WORKER_NONCE_HEADER } from '@sandbox/protocol'
import { describe, expect, test } from 'vitest'
import type { PrecheckOptions, PrecheckRun } from '../src/mcp/index.ts'
import { Guest } from './support/guest.ts'
import { newServer } from './support/mcp-servers.ts'
import { CALL, granted, openRun } from './support/precheck-run.ts'
import { helloBody } from './support/rig.ts'

const HELLO = helloBody({ mode: 'precheck' })
const later = () => ({ deadline: performance.now() + 60_000 })

/** A run to deliver. */
function job(changes: Partial<PrecheckRun> = {}): PrecheckRun {
  return {
    turnId: 'r-1',
    script: 'export default async ({ mcp }) => ({ wake: false })',
    firedAt: '2026-03-01T08:00:00.000Z',
    timeZone: 'Europe/Berlin',
    today: '2026-03-01',
    schedule: { id: 's-1', title: 'Morning' },
    servers: [{ server: 'My-Notes', tools: ['echo'] }],
    ...changes,
  }
}

/** A run, its worker on a connection of its own, and a server behind it. */
async function openWorker(options: Partial<PrecheckOptions> = {}) {
  const server = await newServer('json')
  const run = await openRun({ grant: () => [granted(server)], ...options })
  const guest = new Guest(run.path)
  const greet = async () => {
    const welcome = await guest.call({ path: '/worker/hello', body: HELLO })
    return { [WORKER_NONCE_HEADER]: welcome.json.workerNonce as string }
  }
  return {
    run,
    server,
    guest,
    greet,
    next: (headers: Record<string, string>) => guest.call({ method: 'GET', path: '/worker/next', headers }),
    post: (headers: Record<string, string>, result: unknown, turnId = 'r-1') =>
      guest.call({ path: '/worker/result', headers, body: { turnId, result } }),
    [Symbol.asyncDispose]: async () => {
      guest[Symbol.dispose]()
      await run[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

describe('decision 24 and PC-10 the worker of a precheck uses the desk [turn:own-result-only]', () => {
  test('hello, its job, a call, and what the script decided', async () => {
    await using worker = await openWorker()
    const { desk, servers } = worker.run.broker
    const outcome = desk.deliver(
      job({ servers: [...servers].map((one) => ({ ...one, tools: [...one.tools] })) }),
      later(),
    )
    const headers = await worker.greet()
    expect((await desk.hello()).mode).toBe('precheck')
    const found = await worker.next(headers)
    expect(found.json).toEqual({ ...job(), protocol: 1, remainingMs: expect.any(Number) })
    expect(found.text).not.toMatch(/127\.0\.0\.1|http:/)
    expect((await worker.guest.call({ path: '/worker/ack', headers, body: { turnId: 'r-1' } })).status).toBe(
      200,
    )
    expect((await worker.run.call({ body: CALL })).status).toBe(200)
    expect((await worker.post(headers, { ok: true, wake: true, context: 'two notes' })).status).toBe(200)
    expect(await outcome).toEqual({ ok: true, wake: true, context: 'two notes' })
    expect(worker.run.events.map(({ route, name }) => `${route} ${name}`)).toEqual([
      'worker hello',
      'worker next',
      'worker ack',
      'mcp My-Notes/echo',
      'worker result',
    ])
  })

  test('PC-14 a script that failed: its text, bounded', async () => {
    await using worker = await openWorker()
    const outcome = worker.run.broker.desk.deliver(job(), later())
    const headers = await worker.greet()
    await worker.next(headers)
    const long = { ok: false, error: 'x'.repeat(1001) }
    expect((await worker.post(headers, long)).status).toBe(400)
    const huge = { ok: true, wake: true, context: 'x'.repeat(limits.PRECHECK_MESSAGE_BYTES) }
    using other = new Guest(worker.run.path)
    const body = { turnId: 'r-1', result: huge }
    expect((await other.call({ path: '/worker/result', headers, body })).status).toBe(413)
    expect((await worker.post(headers, { ok: false, error: 'no default export' }, 'r-2')).status).toBe(409)
    expect((await worker.post(headers, { ok: false, error: 'no default export' })).status).toBe(200)
    expect(await outcome).toEqual({ ok: false, error: 'no default export' })
    expect((await worker.post(headers, { ok: true, wake: false })).status).toBe(409)
  })

  test('a script without the worker nonce fetches no job and hands in no result', async () => {
    await using worker = await openWorker()
    const outcome = worker.run.broker.desk.deliver(job(), later())
    const headers = await worker.greet()
    await worker.next(headers)
    for (const wrong of [{}, { [WORKER_NONCE_HEADER]: '0'.repeat(64) }]) {
      expect((await worker.next(wrong)).status).toBe(403)
      expect((await worker.post(wrong, { ok: true, wake: false })).status).toBe(403)
    }
    await worker.post(headers, { ok: true, wake: false, note: 'mine' })
    expect(await outcome).toMatchObject({ note: 'mine' })
  })

  test('a worker of another mode is none of this desk', async () => {
    await using worker = await openWorker()
    const waiting = expect(worker.run.broker.desk.hello()).rejects.toMatchObject({ code: 'hello_invalid' })
    expect((await worker.guest.call({ path: '/worker/hello', body: helloBody() })).status).toBe(400)
    await waiting
  })

  test('PC-04 a second hello ends the run: no call after it', async () => {
    await using worker = await openWorker()
    const outcome = expect(worker.run.broker.desk.deliver(job(), later())).rejects.toMatchObject({
      code: 'second_hello',
    })
    await worker.greet()
    expect((await worker.guest.call({ path: '/worker/hello', body: HELLO })).status).toBe(409)
    await outcome
    expect((await worker.run.call()).status).toBe(410)
    expect(worker.server.seen).toEqual([])
  })

  test('a run that is stopped ends the wait on both sides', async () => {
    await using worker = await openWorker()
    const outcome = expect(worker.run.broker.desk.deliver(job(), later())).rejects.toMatchObject({
      code: 'closed',
    })
    await worker.run.broker.stop()
    await outcome
  })
})

describe('PC-04 and W-93 what counts', () => {
  test('the worker’s own messages do not, and do not stand in the way of a call', async () => {
    await using worker = await openWorker({ maxCalls: 2 })
    const headers = await worker.greet()
    // A poll is held: nothing is on the desk.
    worker.guest.send({ method: 'GET', path: '/worker/next', headers })
    expect((await worker.run.call()).status).toBe(200)
    const outcome = worker.run.broker.desk.deliver(job(), later())
    expect((await worker.guest.answer())?.status).toBe(200)
    for (let count = 0; count < 10; count += 1) {
      await worker.guest.call({ path: '/worker/ack', headers, body: { turnId: 'r-1' } })
    }
    expect((await worker.run.call()).status).toBe(200)
    expect((await worker.run.call()).status).toBe(429)
    expect((await worker.post(headers, { ok: true, wake: false })).status).toBe(200)
    expect(await outcome).toEqual({ ok: true, wake: false })
  })

  test('what only looks like one of them does', async () => {
    await using worker = await openWorker({ maxCalls: 2 })
    expect((await worker.run.call({ path: '/worker/next?x' })).status).toBe(404)
    expect((await worker.run.call({ path: '/worker/nothing' })).status).toBe(404)
    expect((await worker.run.call()).status).toBe(429)
  })

  test('W-33 they have a pace of their own', async () => {
    await using worker = await openWorker()
    const headers = await worker.greet()
    const statuses = new Set<number>()
    for (let count = 0; count < 120; count += 1) {
      const body = { turnId: 'r-1' }
      statuses.add((await worker.guest.call({ path: '/worker/ack', headers, body })).status)
    }
    expect([...statuses]).toEqual([409, 429])
  })
})

test.each<[what: string, changes: object]>([
  ['no script', { script: '' }],
  ['a long script', { script: 'x'.repeat(limits.PRECHECK_SCRIPT_CHARS + 1) }],
  ['no schedule', { schedule: undefined }],
  ['more than 64 KiB', { servers: Array(32).fill({ server: 's', tools: Array(128).fill('t'.repeat(100)) }) }],
])('W-93 %s is refused before anything is offered', async (_, changes) => {
  await using worker = await openWorker()
  const { desk } = worker.run.broker
  await expect(desk.deliver({ ...job(), ...changes } as never, later())).rejects.toMatchObject({
    code: 'turn_invalid',
  })
  // The desk is still free.
  const outcome = desk.deliver(job(), later())
  const headers = await worker.greet()
  expect((await worker.next(headers)).status).toBe(200)
  await worker.post(headers, { ok: true, wake: false })
  await outcome
})
