import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { DriverError } from '../errors.ts'
import { type WarmBench, warmBench } from '../testing/warm-bench.ts'
import { backoffMs } from './warm-pool/waits.ts'
import { createWarmPool } from './warm-pool.ts'

/** Resolves when the channel has a waiting worker; its id. */
async function waiting({ pool, started }: WarmBench, channel: string): Promise<string> {
  await expect.poll(() => pool.waiting(), { interval: 5, timeout: 20_000 }).toContain(channel)
  return started.findLast((each) => each.channel === channel)?.worker.workerId ?? ''
}

const idle = { timeout: 20_000, interval: 5 }

test('a turn gets the worker that waits, and no worker is given out twice', async () => {
  await using own = warmBench({ refillMs: 0 })
  own.pool.warm('a')
  const ids = new Set<string>()
  for (let turn = 0; turn < 4; turn += 1) {
    const id = await waiting(own, 'a')
    const ready = await own.pool.acquire('a')
    expect([ready.warm, ready.worker.workerId, ready.place.channel]).toEqual([true, id, 'a'])
    ids.add(id)
    await ready.place.dispose(ready.worker)
  }
  expect(ids.size).toBe(4)
  expect(own.problems).toEqual([])
})

test('a channel without a spare gets a worker of its own making, and its asker is told', async () => {
  const askers: unknown[] = []
  await using own = warmBench()
  const { pool } = own
  own.pool.warm('b')
  await waiting(own, 'b')
  const ready = await pool.acquire('a', { asker: 'turn-1' })
  expect([ready.warm, ready.place.channel]).toEqual([false, 'a'])
  expect(pool.waiting()).toEqual(['b'])
  await ready.place.dispose(ready.worker)
  const told = createWarmPool<never, string>({
    driver: { start: () => Promise.reject(new TypeError('not reached')) },
    prepare: async (_channel, { asker }) => {
      askers.push(asker)
      throw new TypeError('no place')
    },
    refillMs: 0,
  })
  await expect(told.acquire('a', { asker: 'turn-1' })).rejects.toThrow('no place')
  expect(askers).toEqual(['turn-1'])
  await told[Symbol.asyncDispose]()
})

test('a turn that comes while its spare starts waits for that one', async () => {
  await using own = warmBench()
  own.pool.warm('a')
  const ready = await own.pool.acquire('a')
  expect([ready.warm, own.started.length]).toEqual([true, 1])
  await ready.place.dispose(ready.worker)
})

test('decision 7 W-64 the next worker is handed over when the last one is dead, although it is not removed yet', async () => {
  await using own = warmBench({ refillMs: 0 })
  const first = await own.pool.acquire('a')
  await waiting(own, 'a')
  let handed = false
  const next = own.pool.acquire('a').then((ready) => {
    handed = true
    return ready
  })
  const other = await own.pool.acquire('b')
  expect(handed).toBe(false)
  process.kill(Number(first.worker.id), 'SIGKILL')
  const second = await next
  expect(second.worker.workerId).not.toBe(first.worker.workerId)
  expect(own.places.has(first.place)).toBe(true)
  for (const { place, worker } of [first, second, other]) await place.dispose(worker)
})

test('decision 7 a worker of which nobody knows whether it runs is killed before the next', async () => {
  let removed = 0
  const spec = {} as never
  const pool = createWarmPool({
    driver: {
      start: async () => ({
        id: '1',
        workerId: '1',
        output: () => '',
        exited: Promise.resolve({ reason: 'lost' as const }),
        remove: async () => {
          removed += 1
          if (removed < 3) throw new DriverError('remove_failed', 'not yet')
        },
      }),
    },
    prepare: async () => ({ spec, ready: async () => {}, dispose: async () => {} }),
    refillMs: 60_000,
    retryMs: 5,
  })
  await pool.acquire('a')
  await pool.acquire('a')
  expect(removed).toBeGreaterThanOrEqual(3)
  await pool[Symbol.asyncDispose]()
})

test('no more spares than the limit, also while one makes room for another', async () => {
  await using own = warmBench({ limits: { workers: 2 } })
  for (const channel of ['a', 'b', 'c']) own.pool.warm(channel)
  await waiting(own, 'a')
  await waiting(own, 'b')
  expect(own.started.map(({ channel }) => channel).toSorted()).toEqual(['a', 'b'])
  const ready = await own.pool.acquire('b')
  await ready.place.dispose(ready.worker)
  own.pool.warm('d')
  await waiting(own, 'd').catch(() => {})
  expect(own.alive.most).toBeLessThanOrEqual(2)
})

test('the spare that goes is that of the channel used least recently, and only for one used later', async () => {
  await using own = warmBench({ limits: { workers: 2 }, refillMs: 0 })
  for (const channel of ['a', 'b', 'a', 'c']) {
    const { place, worker } = await own.pool.acquire(channel)
    await place.dispose(worker)
    await waiting(own, channel)
  }
  expect(own.pool.waiting().toSorted()).toEqual(['a', 'c'])
  // Two that wait, one that makes room.
  expect(own.alive.most).toBeLessThanOrEqual(3)
  own.pool.warm('never-used')
  expect(own.pool.waiting().toSorted()).toEqual(['a', 'c'])
})

test('memory is a limit too, and 0 workers means none', async () => {
  await using small = warmBench({ limits: { memoryBytes: 31 * 2 ** 20 } })
  small.pool.warm('a')
  small.pool.warm('b')
  await waiting(small, 'a')
  expect(small.started.map(({ channel }) => channel)).toEqual(['a'])
  await using none = warmBench({ limits: { workers: 0 }, refillMs: 0 })
  none.pool.warm('a')
  const ready = await none.pool.acquire('a')
  expect(ready.warm).toBe(false)
  await ready.place.dispose(ready.worker)
  expect(none.started).toHaveLength(1)
})

test('a spare that nobody wants for a while is removed, and none is started in its place', async () => {
  await using own = warmBench({ limits: { idleMs: 400 } })
  own.pool.warm('a')
  await expect.poll(() => own.started.length, idle).toBe(1)
  await own.started[0]?.worker.exited
  await expect.poll(() => own.places.size, idle).toBe(0)
  expect([own.pool.waiting(), own.started.length, own.problems]).toEqual([[], 1, []])
})

test('a spare that dies is never used, reported and replaced', async () => {
  await using own = warmBench()
  own.pool.warm('a')
  const id = await waiting(own, 'a')
  process.kill(Number(own.started[0]?.worker.id), 'SIGKILL')
  await expect.poll(() => own.started.length, idle).toBe(2)
  const ready = await own.pool.acquire('a')
  expect([ready.warm, ready.worker.workerId === id]).toEqual([true, false])
  expect(own.problems).toMatchObject([{ channel: 'a', what: 'died', failures: 1, retryMs: 20 }])
  await ready.place.dispose(ready.worker)
})

test('T65 a spare that is not what it should be when its turn comes is removed, and a new one gets the turn', async () => {
  let fit = true
  await using own = warmBench({
    ready: async () => {
      if (!fit) {
        fit = true
        throw new TypeError('it said hello twice')
      }
    },
  })
  own.pool.warm('a')
  const id = await waiting(own, 'a')
  fit = false
  const ready = await own.pool.acquire('a')
  expect([ready.warm, ready.worker.workerId === id]).toEqual([false, false])
  expect(own.problems).toMatchObject([{ channel: 'a', what: 'unfit' }])
  await ready.place.dispose(ready.worker)
  await expect.poll(() => own.places.size, idle).toBe(0)
})

test('W-63 a spare of an image that is no longer the current one is not used', async () => {
  let image = 'sha256:1'
  await using own = warmBench({ identity: async () => image })
  own.pool.warm('a')
  const id = await waiting(own, 'a')
  image = 'sha256:2'
  const ready = await own.pool.acquire('a')
  expect([ready.warm, ready.worker.workerId === id]).toEqual([false, false])
  expect(own.problems).toMatchObject([{ what: 'outdated', failures: 0 }])
  await ready.place.dispose(ready.worker)
})

test('spares that keep failing are tried less and less often, each failure is reported, and the turn hears its own', async () => {
  await using own = warmBench({ program: 'process.exit(1)', limits: { idleMs: 2_000 } })
  own.pool.warm('a')
  await expect.poll(() => own.problems.length, idle).toBeGreaterThanOrEqual(3)
  own.pool.warm('a')
  const told = own.problems.slice(0, 3)
  expect(told.map(({ what, retryMs }) => [what, retryMs])).toEqual([
    ['start_failed', 20],
    ['start_failed', 40],
    ['start_failed', 80],
  ])
  await expect(own.pool.acquire('a')).rejects.toThrow('the guest ended before it was ready')
  expect([1, 2, 7, 50].map((failures) => backoffMs(1_000, failures))).toEqual([1_000, 2_000, 60_000, 60_000])
})

test('a spare that is not wanted any more goes, also while it starts, and none follows', async () => {
  await using own = warmBench({ refillMs: 0 })
  own.pool.warm('a')
  await waiting(own, 'a')
  await own.pool.cool('a')
  expect([own.pool.waiting(), own.places.size, own.alive.now]).toEqual([[], 0, 0])
  own.pool.warm('a')
  await own.pool.cool('a')
  expect([own.pool.waiting(), own.places.size, own.alive.now]).toEqual([[], 0, 0])
  const ready = await own.pool.acquire('a')
  await own.pool.cool('a')
  // The refill was due at once.
  await pause(20)
  await ready.place.dispose(ready.worker)
  expect([ready.warm, own.pool.waiting(), own.alive.now]).toEqual([false, [], 0])
  expect(own.problems).toEqual([])
})

test('cool waits also for a spare that is leaving already', async () => {
  await using own = warmBench()
  own.pool.warm('a')
  await waiting(own, 'a')
  void own.pool.cool('a')
  await own.pool.cool('a')
  expect([own.places.size, own.alive.now]).toEqual([0, 0])
})

test('a turn that is called off while it waits leaves the spare to the next', async () => {
  await using own = warmBench()
  const stop = new AbortController()
  own.pool.warm('a')
  const called = own.pool.acquire('a', { signal: stop.signal })
  stop.abort()
  await expect(called).rejects.toMatchObject({ code: 'aborted' })
  const ready = await own.pool.acquire('a')
  expect([ready.warm, own.started.length]).toEqual([true, 1])
  await ready.place.dispose(ready.worker)
})

test('W-60 a start that is called off leaves nothing', async () => {
  await using own = warmBench({ ready: () => new Promise(() => {}) })
  const stop = new AbortController()
  const called = own.pool.acquire('a', { signal: stop.signal })
  await expect.poll(() => own.started.length, idle).toBe(1)
  stop.abort()
  await expect(called).rejects.toMatchObject({ code: 'aborted' })
  expect([own.places.size, own.alive.now]).toEqual([0, 0])
})

test('dispose removes every spare, those that start included, and takes no more', async () => {
  await using own = warmBench()
  own.pool.warm('a')
  await waiting(own, 'a')
  own.pool.warm('b')
  await own.pool[Symbol.asyncDispose]()
  expect([own.pool.waiting(), own.places.size, own.alive.now]).toEqual([[], 0, 0])
  await expect(own.pool.acquire('a')).rejects.toMatchObject({ code: 'closed' })
  own.pool.warm('a')
  expect(own.places.size).toBe(0)
})

test('two channels that always want a worker get one in turns, with one start at a time and no spares', async () => {
  await using own = warmBench({ startLimit: 1, limits: { workers: 0 } })
  const turns = async (channel: string) => {
    for (let turn = 0; turn < 4; turn += 1) {
      const { place, worker } = await own.pool.acquire(channel)
      await place.dispose(worker)
    }
  }
  await Promise.all([turns('a'), turns('b'), turns('c')])
  const order = own.started.map(({ channel }) => channel)
  for (const round of [0, 3, 6, 9]) expect(order.slice(round, round + 3).toSorted()).toEqual(['a', 'b', 'c'])
})

test('what cannot be removed is reported', async () => {
  await using own = warmBench()
  const pool = createWarmPool({
    driver: { start: (spec, signal) => Promise.reject(new TypeError(`${spec.runDir} ${signal?.aborted}`)) },
    prepare: async () => ({
      spec: { runDir: '/x' } as never,
      ready: async () => {},
      dispose: async () => Promise.reject(new TypeError('disk is full')),
    }),
    onProblem: (problem) => own.problems.push(problem),
    limits: { idleMs: 100 },
    retryMs: 1_000,
  })
  pool.warm('a')
  await expect.poll(() => own.problems.length, idle).toBe(2)
  expect(own.problems.map(({ what }) => what)).toEqual(['cleanup_failed', 'start_failed'])
  expect(own.problems[1]).not.toHaveProperty('retryMs')
  await pool[Symbol.asyncDispose]()
})

test.each([
  ['warm.workers', { limits: { workers: -1 } }],
  ['warm.workers', { limits: { workers: 1.5 } }],
  ['warm.memoryBytes', { limits: { memoryBytes: Number.NaN } }],
  ['warm.idleMs', { limits: { idleMs: 0 } }],
  ['startLimit', { startLimit: 0 }],
])('%s out of range is refused by name', (field, options) => {
  const parts = { driver: { start: () => Promise.reject() }, prepare: () => Promise.reject() }
  expect(() => createWarmPool({ ...parts, ...options })).toThrow(field)
})
