import { describe, expect, test, vi } from 'vitest'
import { DelegationError } from './delegation-error.ts'
import type { DelegationJob, DelegationOutcome, DelegatorOptions } from './delegator-options.ts'
import { ScopedSandboxDelegator } from './scoped-delegator.ts'

const ann = { id: 'u-ann', name: 'Ann' }
const request = {
  channel: 'fake:1',
  target: 'researcher',
  author: ann,
  title: 'T',
  task: 'look it up',
} as const

/** A delegator and what it delivered. */
function delegator(options: Partial<DelegatorOptions> = {}) {
  const delivered: [DelegationJob, DelegationOutcome][] = []
  const it = new ScopedSandboxDelegator({
    target: 'researcher',
    run: async () => 'report',
    deliver: (...one) => void delivered.push(one),
    ...options,
  })
  const outcomes = () => delivered.map(([, outcome]) => outcome)
  return { it, delivered, outcomes }
}

/** Runs until its signal fires, and then ends as told. */
function untilSignal(end: (signal: AbortSignal) => Promise<string>): DelegatorOptions['run'] {
  return async (_task, { signal }) => {
    if (!signal.aborted) await new Promise((done) => signal.addEventListener('abort', done, { once: true }))
    return end(signal)
  }
}

function fail(): never {
  throw new TypeError('unreadable')
}

describe('what is taken', () => {
  test('DG-04 a job runs in the name of its channel and speaker, and its report is delivered', async () => {
    const seen: unknown[] = []
    const { it, delivered } = delegator({
      run: async (task, { signal, ...scope }) => {
        seen.push(task, scope, signal.aborted)
        return ' found it '
      },
    })
    const job = it.start({ ...request, title: ' T ', task: ' look it up ' })
    expect(job).toMatchObject({
      channel: 'fake:1',
      target: 'researcher',
      author: ann,
      title: 'T',
      task: 'look it up',
    })
    expect([it.runningChannels(), delivered]).toEqual([['fake:1'], []])
    await it.idle()
    expect(seen).toEqual(['look it up', { channel: 'fake:1', author: ann }, false])
    expect(delivered).toEqual([[job, { ok: true, report: 'found it' }]])
    expect(it.runningChannels()).toEqual([])
  })

  test.each<[string, object]>([
    ['another target', { target: 'owner' }],
    ['an origin thread', { origin: 'fake:2' }],
    ['a tier', { author: { ...ann, tier: 'owner' } }],
  ])('DG-01 %s is out of scope', (_what, more) => {
    const { it } = delegator()
    const start = () => it.start({ ...request, ...more } as never)
    expect(start).toThrow(DelegationError)
    expect(start).toThrow(/scope/i)
  })

  test.each<[object, RegExp]>([
    [{ title: '  ' }, /title is missing/],
    [{ task: '\n' }, /task is missing/],
    [{ title: 'x'.repeat(201) }, /title has 201 characters, 200 at most/],
    [{ task: 'x'.repeat(4_001) }, /task has 4001 characters, 4000 at most/],
  ])('DG-02 %j is refused with the numbers', (more, words) => {
    expect(() => delegator().it.start({ ...request, ...more })).toThrow(words)
  })

  test('DG-02 a title may be as long as the operator allows', async () => {
    const { it } = delegator({ maxTitleChars: Number.POSITIVE_INFINITY })
    it.start({ ...request, title: 'x'.repeat(5_000) })
    await it.idle()
  })

  test('DG-03 a channel has two jobs at most, another channel its own', async () => {
    const { it, outcomes } = delegator({ run: untilSignal(async () => 'x') })
    it.start(request)
    it.start(request)
    expect(() => it.start(request)).toThrow(/2 jobs, 2 at most/)
    it.start({ ...request, channel: 'fake:2' })
    expect(it.runningChannels()).toEqual(['fake:1', 'fake:2'])
    await it.dispose()
    expect(outcomes()).toHaveLength(3)
  })

  test.each<[string, object]>([
    ['maxRunning', { maxRunning: 0 }],
    ['maxRunning', { maxRunning: 11 }],
    ['timeoutMs', { timeoutMs: 999 }],
    ['timeoutMs', { timeoutMs: 1_200_001 }],
    ['maxTitleChars', { maxTitleChars: 1.5 }],
    ['target', { target: ' ' }],
  ])('DG-03 the option %s is checked: %j', (option, options) => {
    expect(() => delegator(options)).toThrow(new RegExp(`^${option}`))
  })
})

describe('what is delivered', () => {
  test('DG-05 a long report is cut; none at all is a failure', async () => {
    const reports = ['x'.repeat(11), '  ', undefined as never]
    const { it, outcomes } = delegator({
      maxReportChars: 10,
      maxRunning: 3,
      run: async () => reports.shift() as string,
    })
    for (let n = 0; n < 3; n += 1) it.start(request)
    await it.idle()
    expect(outcomes()).toEqual([
      { ok: true, report: `${'x'.repeat(9)}…` },
      { ok: false, error: 'There was no report.' },
      { ok: false, error: 'There was no report.' },
    ])
  })

  test('DG-05 the reason of a failure is short, plain, and without anything like a credential', async () => {
    const key = 'sk-proj-0123456789abcdefghijklmnop'
    const { it, outcomes } = delegator({
      diagnosticChars: 60,
      run: () => Promise.reject(new TypeError(`refused\u0007 for ${key} ${'x'.repeat(100)}`)),
    })
    it.start(request)
    await it.idle()
    const [outcome] = outcomes()
    expect(outcome).toMatchObject({ ok: false, error: expect.stringMatching(/^refused.* for .*…$/) })
    expect(JSON.stringify(outcome)).not.toContain('0123456789')
    expect((outcome as { error: string }).error.length).toBeLessThanOrEqual(60)
  })

  test('DG-05 W-91 a deadline reads as out of time, whatever the run makes of it', async () => {
    vi.useFakeTimers()
    try {
      const { it, outcomes } = delegator({
        timeoutMs: 1_000,
        maxRunning: 3,
        run: untilSignal(() => Promise.reject(new TypeError('interrupted'))),
      })
      it.start(request)
      await vi.advanceTimersByTimeAsync(1_000)
      await it.idle()
      expect(outcomes()).toEqual([{ ok: false, error: 'Out of time after 1 s.' }])
    } finally {
      vi.useRealTimers()
    }
  })

  test('W-91 a run that ignores its signal is given up, and its place is free', async () => {
    vi.useFakeTimers()
    try {
      const { it, outcomes } = delegator({
        timeoutMs: 1_000,
        maxRunning: 1,
        run: () => new Promise(() => {}),
      })
      it.start(request)
      await vi.advanceTimersByTimeAsync(5_999)
      expect(outcomes()).toEqual([])
      await vi.advanceTimersByTimeAsync(1)
      await it.idle()
      expect(outcomes()).toEqual([{ ok: false, error: 'Out of time after 1 s.' }])
      it.start(request)
      const disposed = it.dispose()
      await vi.advanceTimersByTimeAsync(5_000)
      await disposed
      expect(outcomes()[1]).toEqual({ ok: false, error: 'The host was stopped before it was done.' })
    } finally {
      vi.useRealTimers()
    }
  })

  test('DG-07 W-91 dispose ends what runs with a reason of its own, and takes nothing more', async () => {
    const { it, outcomes } = delegator({ run: untilSignal(async () => 'finished all the same') })
    it.start(request)
    await it.dispose()
    expect(outcomes()).toEqual([{ ok: false, error: 'The host was stopped before it was done.' }])
    expect(() => it.start(request)).toThrow(/stopping/)
    await it.dispose()
  })

  test('DG-06 every job is delivered once; a delivery that fails is logged and nothing else', async () => {
    const lines: object[] = []
    const logger = { info: () => {}, warn: () => {}, error: (fields: object) => void lines.push(fields) }
    let calls = 0
    const { it } = delegator({
      logger,
      deliver: async () => {
        calls += 1
        throw new TypeError('the room is gone')
      },
    })
    const { id } = it.start(request)
    await it.idle()
    expect([calls, lines]).toEqual([1, [{ job: id, channel: 'fake:1', cause: 'the room is gone' }]])
  })

  test.each(['throw', 'reject'])(
    'DG-06 a logger whose lines %s harms neither the host nor the next job',
    async (how) => {
      const fails = () => {
        if (how === 'throw') throw new TypeError('disk full')
        return Promise.reject(new TypeError('disk full'))
      }
      const { it } = delegator({
        logger: { info: fails, warn: fails, error: fails },
        deliver: () => Promise.reject(new TypeError('the room is gone')),
      })
      it.start(request)
      await it.idle()
      expect(it.runningChannels()).toEqual([])
    },
  )

  test('DG-06 W-91 a delivery that never settles gives its place back after two minutes', async () => {
    vi.useFakeTimers()
    const lines: object[] = []
    const logger = { info: () => {}, warn: () => {}, error: (fields: object) => void lines.push(fields) }
    const { it } = delegator({ logger, deliver: () => new Promise(() => {}) })
    try {
      it.start(request)
      await vi.advanceTimersByTimeAsync(119_999)
      expect(it.runningChannels()).toEqual(['fake:1'])
      await vi.advanceTimersByTimeAsync(1)
      await it.idle()
    } finally {
      vi.useRealTimers()
    }
    expect(lines).toMatchObject([{ cause: 'it was not taken within 120000 ms' }])
  })

  test.each<[string, unknown]>([
    ['no prototype', Object.create(null)],
    ['a message that is no text', Object.assign(new Error('x'), { message: Object.create(null) })],
    [
      'a message that cannot be read',
      Object.defineProperty(new Error('x'), 'message', { get: () => fail() }),
    ],
  ])('DG-06 a run that throws something with %s has failed like any other', async (_what, thrown) => {
    const { it, outcomes } = delegator({ run: () => Promise.reject(thrown) })
    it.start(request)
    await it.idle()
    expect(outcomes()).toEqual([{ ok: false, error: 'It failed.' }])
  })

  test('W-91 author and scope are copies: nobody changes them for a job that runs', async () => {
    const author = { ...ann }
    const { it, delivered } = delegator({
      run: async (_task, scope) => {
        expect(() => Object.assign(scope.author, { id: 'u-bob' })).toThrow()
        return scope.author.id
      },
    })
    it.start({ ...request, author })
    author.id = 'u-eve'
    await it.idle()
    expect(delivered[0]).toMatchObject([{ author: ann }, { ok: true, report: 'u-ann' }])
  })
})
