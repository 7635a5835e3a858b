import { describe, expect, test } from 'vitest'
import {
  type CachedOptions,
  type CredentialAnswer,
  type CredentialGetter,
  cached,
  explain,
  fingerprintOf,
} from './index.ts'
import { fromEnv } from './sources/index.ts'

const scope = (channel: string, id = 'u-ann') => ({ channel, speaker: { id, name: 'Ann' } })
const alpha = scope('demo:alpha')

function counted(
  answer: (n: number) => CredentialAnswer | Promise<CredentialAnswer>,
  options: Partial<CachedOptions> = {},
) {
  const clock = { now: 1_000_000, calls: 0 }
  const source: CredentialGetter = () => answer(++clock.calls)
  return { clock, getter: cached(source, { ttlMs: 1_000, now: () => clock.now, ...options }) }
}

describe('cached', () => {
  test('an answer is kept for its time', async () => {
    const { clock, getter } = counted((n) => `sk-${n}`)
    expect(await getter(alpha)).toBe('sk-1')
    clock.now += 999
    expect(await getter(alpha)).toBe('sk-1')
    clock.now += 1
    expect(await getter(alpha)).toBe('sk-2')
  })

  test('CS-21 an account that became another person’s asks for a credential of its own', async () => {
    const { getter } = counted((n) => `sk-${n}`)
    const of = (principalId: string) => ({ ...alpha, speaker: { ...alpha.speaker, principalId } })
    expect([await getter(of('p-1')), await getter(of('p-2')), await getter(alpha)]).toEqual([
      'sk-1',
      'sk-2',
      'sk-3',
    ])
    expect(await getter(of('p-1'))).toBe('sk-1')
  })

  test('T9 it is not used when its end is near', async () => {
    const { clock, getter } = counted((n) => ({ token: `sk-${n}`, expiresAt: clock.now + 500 }), {
      marginMs: 100,
    })
    expect(await getter(alpha)).toMatchObject({ token: 'sk-1' })
    clock.now += 399
    expect(await getter(alpha)).toMatchObject({ token: 'sk-1' })
    clock.now += 1
    expect(await getter(alpha)).toMatchObject({ token: 'sk-2' })
  })

  test('CS-14 T2 another channel and another speaker never get it', async () => {
    const { getter } = counted((n) => `sk-${n}`)
    const answers = [
      await getter(alpha),
      await getter(scope('demo:beta')),
      await getter(scope('demo:alpha', 'u-bob')),
    ]
    expect(answers).toEqual(['sk-1', 'sk-2', 'sk-3'])
    expect(await getter(alpha)).toBe('sk-1')
  })

  test('keyOf shares on purpose', async () => {
    const { getter } = counted((n) => `sk-${n}`, { keyOf: () => '' })
    expect([await getter(alpha), await getter(scope('demo:beta'))]).toEqual(['sk-1', 'sk-1'])
  })

  test('T71 single flight: 500 calls at once ask once', async () => {
    const { clock, getter } = counted(async (n) => {
      await new Promise((done) => setImmediate(done))
      return `sk-${n}`
    })
    const answers = await Promise.all(Array.from({ length: 500 }, () => getter(alpha)))
    expect(new Set(answers)).toEqual(new Set(['sk-1']))
    expect(clock.calls).toBe(1)
  })

  test.each<[string, CredentialAnswer]>([
    ['undefined', undefined],
    ['null', null],
    ['an empty text', ''],
    ['an empty token', { token: '' }],
  ])('"none" (%s) is not kept', async (_what, none) => {
    const { getter } = counted((n) => (n === 1 ? none : 'sk-2'))
    expect(await getter(alpha)).toBe(none)
    expect(await getter(alpha)).toBe('sk-2')
  })

  test('a failure fails all who wait and is not kept', async () => {
    const { clock, getter } = counted((n) => (n === 1 ? Promise.reject(new TypeError('down')) : 'sk-2'))
    const both = await Promise.allSettled([getter(alpha), getter(alpha)])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(clock.calls).toBe(1)
    expect(await getter(alpha)).toBe('sk-2')
  })

  test('W-07 a refused credential is dropped, a newer one is not', async () => {
    const { clock, getter } = counted((n) => `sk-number-${n}`)
    const request = (n: number) => ({
      signal: new AbortController().signal,
      rejected: { fingerprint: fingerprintOf(`sk-number-${n}`), status: 401 },
    })
    expect(await getter(alpha)).toBe('sk-number-1')
    expect(await getter(alpha, request(1))).toBe('sk-number-2')
    expect(await getter(alpha, request(1))).toBe('sk-number-2')
    expect(clock.calls).toBe(2)
  })

  test('one caller that leaves does not end it for the others; when all left, the source hears of it', async () => {
    let heard: AbortSignal | undefined
    let answer: (token: string) => void = () => {}
    const getter = cached(
      (_scope, request) => {
        heard = request?.signal
        return new Promise((done) => {
          answer = done
        })
      },
      { ttlMs: 1_000 },
    )
    const [a, b] = [new AbortController(), new AbortController()]
    const first = getter(alpha, { signal: a.signal })
    const second = getter(alpha, { signal: b.signal })
    a.abort()
    expect(heard?.aborted).toBe(false)
    const before = heard
    b.abort()
    expect(before?.aborted).toBe(true)
    const third = getter(alpha)
    expect(heard).not.toBe(before)
    answer('sk-third')
    expect(await third).toBe('sk-third')
    // The abandoned question never settles; nothing waits for it.
    expect(await Promise.race([first, second, 'pending'])).toBe('pending')
    const gone = getter(scope('demo:gone'), { signal: AbortSignal.abort() })
    expect(heard?.aborted).toBe(true)
    answer('sk-gone')
    expect(await gone).toBe('sk-gone')
  })

  test('the entry that was not used for longest goes first', async () => {
    const { clock, getter } = counted((n) => `sk-${n}`, { maxEntries: 2 })
    await getter(scope('demo:a'))
    await getter(scope('demo:b'))
    await getter(scope('demo:a'))
    await getter(scope('demo:c'))
    expect(clock.calls).toBe(3)
    expect(await getter(scope('demo:a'))).toBe('sk-1')
    expect(await getter(scope('demo:b'))).toBe('sk-4')
  })

  test('explain sees through it, kept or not', async () => {
    const getter = cached(fromEnv('KEY', { env: { KEY: 'sk-env-0123456789' } }), { ttlMs: 1_000 })
    for (let i = 0; i < 2; i++)
      expect(await explain(getter, alpha)).toMatchObject({ source: 'env:KEY', outcome: 'ok' })
  })

  test('unusable options are refused at once', () => {
    for (const options of [
      { ttlMs: -1 },
      { ttlMs: Number.NaN },
      { ttlMs: 1, marginMs: -1 },
      { ttlMs: 1, maxEntries: -1 },
    ]) {
      expect(() => cached(() => 'x', options)).toThrow(TypeError)
    }
    expect(() => cached(undefined as never, { ttlMs: 1 })).toThrow(TypeError)
  })
})
