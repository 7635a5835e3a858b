import { type CompactionRequest, limits } from '@sandbox/protocol'
import { describe, expect, test } from 'vitest'
import type {
  PiCompaction,
  PiCompactionEvent,
  PiCompactorContext,
  PiSandboxBrokerOptions,
} from '../src/index.ts'
import type { PiTimes } from '../src/pi-broker.ts'
import { call, context, openRig, type Rig } from './support/rig.ts'

const REQUEST: CompactionRequest = {
  reason: 'threshold',
  tokensBefore: 300_000,
  firstKeptEntryId: 'e-9',
  isSplitTurn: false,
  messagesToSummarize: [{ role: 'user' }],
  turnPrefixMessages: [],
  keptMessages: [],
  readFiles: [],
  modifiedFiles: [],
}
const RESULT = { firstKeptEntryId: 'e-9', summary: 'They spoke.', tokensBefore: 300_000, tokensAfter: 40_000 }
const compact = (rig: Rig, nonce: string | undefined, body: unknown = REQUEST) =>
  call(rig, nonce, { path: '/compaction/compact', body })
const report = (rig: Rig, nonce: string | undefined, body: unknown) =>
  call(rig, nonce, { path: '/compaction/report', body })

async function open(
  compaction: Partial<PiCompaction> | undefined,
  options: Partial<PiSandboxBrokerOptions> = {},
  times: Partial<PiTimes> = {},
) {
  const told: PiCompactionEvent[] = []
  const rig = await openRig(
    {
      ...(compaction === undefined
        ? {}
        : { compaction: { engine: 'own@1', compact: () => RESULT, ...compaction } }),
      onCompaction: (event) => {
        told.push(event)
        throw new TypeError('a faulty listener')
      },
      ...options,
    },
    times,
  )
  return { ...rig, told }
}

describe('CP-03 to CP-10 a compaction by the host', () => {
  test('the compactor gets the request and the whole scope; the broker stamps its engine', async () => {
    const seen: { request: CompactionRequest; context: PiCompactorContext }[] = []
    await using rig = await open({
      compact: (request, given) => {
        seen.push({ request, context: given })
        return { ...RESULT, details: { model: 'm', engine: 'other' }, extra: 'x' } as never
      },
    })
    const { nonce } = rig.broker.bind(context())
    const answer = await compact(rig, nonce, { ...REQUEST, extra: 'x' })
    expect(answer.json).toEqual({ ok: true, result: { ...RESULT, details: { model: 'm', engine: 'own@1' } } })
    expect(seen[0]?.request).toEqual(REQUEST)
    // W-12
    expect(seen[0]?.context).toMatchObject({ channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } })
    expect(Object.isFrozen(seen[0]?.context)).toBe(true)
    expect(rig.told).toMatchObject([
      {
        kind: 'answered',
        engine: 'own@1',
        tokensBefore: 300_000,
        tokensAfter: 40_000,
        scope: { channel: 'web:room' },
      },
    ])
  })

  test('CP-03 only in a turn, by POST; CP-04 it spends no budget', async () => {
    await using rig = await open({}, { maxCalls: 1 })
    expect((await compact(rig, undefined)).status).toBe(410)
    const bound = rig.broker.bind(context())
    expect((await call(rig, bound.nonce, { path: '/compaction/compact', method: 'GET' })).status).toBe(404)
    expect((await call(rig, bound.nonce, { path: '/compaction/compact?x', body: REQUEST })).status).toBe(404)
    expect((await compact(rig, bound.nonce)).status).toBe(200)
    expect((await compact(rig, bound.nonce)).status).toBe(200)
    expect((await call(rig, bound.nonce)).status).toBe(200)
    bound.release()
    expect((await compact(rig, bound.nonce)).status).toBe(410)
  })

  test('CP-04 three per turn, then Pi makes its own; a new turn has three again', async () => {
    await using rig = await open({})
    for (let turn = 0; turn < 2; turn += 1) {
      const bound = rig.broker.bind(context())
      const answers = []
      for (let count = 0; count < 4; count += 1) answers.push((await compact(rig, bound.nonce)).json)
      expect(answers.map(({ ok }) => ok)).toEqual([true, true, true, false])
      expect(answers[3]).toEqual({ ok: false, fallback: 'turn_limit' })
      bound.release()
    }
  })

  const failures: readonly [string, Partial<PiCompaction> | undefined, unknown, string][] = [
    ['no compactor', undefined, REQUEST, 'no_compactor'],
    ['it declines', { compact: () => undefined }, REQUEST, 'declined'],
    ['no request', {}, { ...REQUEST, reason: 'whim' }, 'request_invalid'],
    ['no JSON', {}, '{', 'request_invalid'],
    ['another cut', { compact: () => ({ ...RESULT, firstKeptEntryId: 'e-1' }) }, REQUEST, 'result_invalid'],
    ['no summary', { compact: () => ({ ...RESULT, summary: '' }) }, REQUEST, 'result_invalid'],
    [
      'W-82 a summary without end',
      { compact: () => ({ ...RESULT, summary: 'x'.repeat(200_001) }) },
      REQUEST,
      'result_invalid',
    ],
    [
      'W-82 a count below zero',
      { compact: () => ({ ...RESULT, tokensAfter: -1 }) },
      REQUEST,
      'result_invalid',
    ],
    ['too many bytes', { maxRequestBytes: 50 }, REQUEST, 'too_large'],
    ['CP-13 too many tokens', {}, { ...REQUEST, tokensBefore: 500_001 }, 'too_many_tokens'],
  ]
  test.each(failures)(
    'CP-05 CP-06 %s: status 200, and Pi makes its own',
    async (_what, compaction, body, fallback) => {
      await using rig = await open(compaction)
      const { nonce } = rig.broker.bind(context())
      const answer = await compact(rig, nonce, body)
      expect([answer.status, answer.json]).toEqual([200, { ok: false, fallback }])
      expect(rig.told).toMatchObject([{ kind: 'fallback', reason: fallback }])
    },
  )

  test('CP-06 what it throws is for the host, without secrets [secret:not-in-host-output]', async () => {
    const key = `sk-ant-api03-${'a1B2'.repeat(12)}`
    await using rig = await open({
      compact: () => {
        throw new TypeError(`401 for ${key}`)
      },
    })
    const { nonce } = rig.broker.bind(context())
    expect((await compact(rig, nonce)).json).toEqual({ ok: false, fallback: 'failed' })
    expect(rig.told).toMatchObject([{ reason: 'failed', detail: expect.stringContaining('401 for') }])
    expect(JSON.stringify(rig.told)).not.toContain(key)
  })

  test('CP-07 under two seconds of turn it is not even asked', async () => {
    let asked = 0
    await using rig = await open({
      compact: () => {
        asked += 1
        return RESULT
      },
    })
    const { nonce } = rig.broker.bind(context({ deadline: performance.now() + 1900 }))
    expect((await compact(rig, nonce)).json).toEqual({ ok: false, fallback: 'too_little_time' })
    expect(asked).toBe(0)
  })

  test('CP-07 it gets half of what the turn has left, when that is less than its own time', async () => {
    let given: PiCompactorContext | undefined
    await using rig = await open({
      timeoutMs: 600_000,
      compact: (_, context_) => {
        given = context_
        return RESULT
      },
    })
    const startedMs = performance.now()
    const { nonce } = rig.broker.bind(context({ deadline: startedMs + 20_000 }))
    await compact(rig, nonce)
    expect(given?.deadline).toBeLessThanOrEqual(startedMs + 10_000 + 500)
    expect(given?.deadline).toBeGreaterThan(startedMs + 8_000)
  })

  test('CP-08 one that ignores its time falls back on time, and holds the slot until it settles', async () => {
    const release = Promise.withResolvers<undefined>()
    let signal: AbortSignal | undefined
    await using rig = await open({
      timeoutMs: 1000,
      compact: (_, context_) => {
        signal ??= context_.signal
        return release.promise
      },
    })
    const { nonce } = rig.broker.bind(context())
    expect((await compact(rig, nonce)).json).toEqual({ ok: false, fallback: 'too_slow' })
    expect(signal?.aborted).toBe(true)
    expect((await compact(rig, nonce)).json).toEqual({ ok: false, fallback: 'already_running' })
    release.resolve(undefined)
    await expect.poll(async () => (await compact(rig, nonce)).json.fallback).toBe('declined')
  })

  test('W-82 but not for ever', async () => {
    let calls = 0
    await using rig = await open(
      {
        timeoutMs: 1000,
        compact: () => {
          calls += 1
          return calls === 1 ? new Promise(() => {}) : RESULT
        },
      },
      {},
      { graceMs: 50 },
    )
    const { nonce } = rig.broker.bind(context())
    expect((await compact(rig, nonce)).json.fallback).toBe('too_slow')
    await expect.poll(async () => (await compact(rig, nonce)).json.ok).toBe(true)
  })

  test('CP-08 the end of the turn ends it', async () => {
    const started = Promise.withResolvers<AbortSignal>()
    await using rig = await open({
      compact: (_, { signal }) => {
        started.resolve(signal)
        return new Promise(() => {})
      },
    })
    const bound = rig.broker.bind(context())
    const answer = compact(rig, bound.nonce)
    const signal = await started.promise
    bound.release()
    expect(signal.aborted).toBe(true)
    expect((await answer).json).toEqual({ ok: false, fallback: 'aborted' })
  })

  test('CP-13 a summary that left too much: the next one is Pi’s, and then the host is asked again', async () => {
    const left = [500_001, 10, 10]
    await using rig = await open({ compact: () => ({ ...RESULT, tokensAfter: left.shift() ?? 0 }) })
    const { nonce } = rig.broker.bind(context())
    expect((await compact(rig, nonce)).json.ok).toBe(true)
    expect((await compact(rig, nonce)).json).toEqual({ ok: false, fallback: 'too_many_tokens' })
    expect((await compact(rig, nonce)).json.ok).toBe(true)
  })

  test('W-22 no token of the turn goes in with a summary', async () => {
    const rigSecret = { value: '' }
    await using rig = await open({ compact: () => ({ ...RESULT, summary: `It is ${rigSecret.value}.` }) })
    rigSecret.value = rig.secret
    const { nonce } = rig.broker.bind(context())
    await call(rig, nonce)
    expect((await compact(rig, nonce)).json).toEqual({ ok: false, fallback: 'result_invalid' })
  })
})

describe('CP-11 and CP-12 reports', () => {
  const done = { kind: 'compacted', reason: 'manual', engine: 'pi', tokensBefore: 9, tokensAfter: 1 }
  test('sixteen per turn reach the host, with the turn’s scope; the next one is 429', async () => {
    await using rig = await open(undefined)
    const bound = rig.broker.bind(context())
    for (let count = 0; count < 16; count += 1) {
      expect((await report(rig, bound.nonce, { ...done, extra: 1 })).json).toEqual({})
    }
    expect((await report(rig, bound.nonce, done)).status).toBe(429)
    expect(rig.told).toHaveLength(16)
    expect(rig.told[0]).toEqual({
      ...done,
      turnId: bound.turnId,
      scope: { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } },
    })
  })
  test('the two other kinds; what is none is 400, and outside a turn 410', async () => {
    await using rig = await open(undefined)
    expect((await report(rig, undefined, done)).status).toBe(410)
    const { nonce } = rig.broker.bind(context())
    expect((await report(rig, nonce, { kind: 'failed', reason: 'overflow', error: 'x' })).status).toBe(200)
    expect(
      (await report(rig, nonce, { kind: 'bypassed', reason: 'over 500000', tokensBefore: 5 })).status,
    ).toBe(200)
    for (const bad of [
      {},
      { ...done, engine: '' },
      { kind: 'bypassed', reason: 'x'.repeat(1001), tokensBefore: 1 },
    ]) {
      expect((await report(rig, nonce, bad)).status).toBe(400)
    }
    const large = { ...done, padding: 'x'.repeat(limits.WORKER_MESSAGE_BYTES) }
    expect((await report(rig, nonce, large)).status).toBe(413)
  })
})
