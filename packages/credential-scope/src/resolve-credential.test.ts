import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import {
  type CredentialAnswer,
  CredentialError,
  type CredentialGetter,
  fingerprintOf,
  type ResolveOptions,
  resolveCredential,
  type SandboxCredentialScope,
} from './index.ts'

const origin = 'https://api.example.com'
const alpha = { channel: 'demo:alpha', speaker: { id: 'u-ann', name: 'Ann' } }
const beta = { channel: 'demo:beta', speaker: { id: 'u-bob', name: 'Bob' } }
const token = 'sk-alpha-0123456789'

async function failure(
  getter: CredentialGetter,
  more: Partial<ResolveOptions> = {},
): Promise<CredentialError> {
  const error = await resolveCredential({ getter, scope: alpha, origin, ...more }).then(
    () => undefined,
    (caught: unknown) => caught,
  )
  if (!CredentialError.isInstance(error))
    throw new TypeError(`expected a CredentialError, not ${inspect(error)}`)
  return error
}

describe('asking the hook', () => {
  test('CS-02 it is asked for every call, nothing is cached', async () => {
    let calls = 0
    const getter = () => {
      calls += 1
      return `${token}-${calls}`
    }
    const first = await resolveCredential({ getter, scope: alpha, origin })
    const second = await resolveCredential({ getter, scope: alpha, origin })
    expect(calls).toBe(2)
    expect(first.fingerprint).toBe(fingerprintOf(`${token}-1`))
    expect(second.fingerprint).toBe(fingerprintOf(`${token}-2`))
  })

  test('CS-01 CS-05 CS-14 it gets exactly the scope of its own call', async () => {
    const seen: SandboxCredentialScope[] = []
    const getter: CredentialGetter = (scope) => {
      seen.push(scope)
      return `${token}-${seen.length}`
    }
    const keys: string[] = []
    for (const scope of [alpha, beta, alpha]) {
      keys.push(
        (await resolveCredential({ getter, scope: { ...scope, extra: 1 } as never, origin })).fingerprint,
      )
    }
    expect(seen).toStrictEqual([alpha, beta, alpha])
    expect(keys).toEqual([1, 2, 3].map((n) => fingerprintOf(`${token}-${n}`)))
  })

  test('CS-06 W-03 a hook that writes to its argument changes no other call', async () => {
    const scope = structuredClone(alpha)
    const seen: SandboxCredentialScope[] = []
    const getter: CredentialGetter = (own) => {
      seen.push(own)
      try {
        ;(own as { channel: string }).channel = 'demo:beta'
        ;(own.speaker as { id: string }).id = 'u-bob'
      } catch {}
      return token
    }
    await resolveCredential({ getter, scope, origin })
    await resolveCredential({ getter, scope, origin })
    expect(seen).toStrictEqual([alpha, alpha])
    expect(seen[0]).not.toBe(seen[1])
    expect(seen[0]?.speaker).not.toBe(seen[1]?.speaker)
    expect(scope).toStrictEqual(alpha)
  })

  test('CS-12 a call keeps the scope that it had, though the caller changes its object meanwhile', async () => {
    const scope = structuredClone(alpha)
    const getter: CredentialGetter = async (own) => {
      await new Promise((done) => setImmediate(done))
      return `${token}-${own.channel}-${own.speaker.id}`
    }
    const pending = resolveCredential({ getter, scope, origin })
    scope.channel = 'demo:beta'
    scope.speaker.id = 'u-bob'
    expect((await pending).fingerprint).toBe(fingerprintOf(`${token}-demo:alpha-u-ann`))
  })

  test('CS-07 CS-08 a hook without arguments, and a promise, will do', async () => {
    for (const getter of [() => token, async () => token, () => ({ token })]) {
      const secret = await resolveCredential({ getter, scope: alpha, origin: `${origin}/v1/chat` })
      expect(secret.fingerprint).toBe(fingerprintOf(token))
      expect(secret.origin).toBe(origin)
    }
  })

  test('CS-20 a scope that is none never reaches the hook', async () => {
    let calls = 0
    const getter = () => {
      calls += 1
      return token
    }
    const error = await failure(getter, { scope: { channel: '', speaker: { id: '', name: '' } } })
    expect(error.code).toBe('scope_invalid')
    expect(calls).toBe(0)
  })

  test('a caller’s mistake is a TypeError and never reaches the hook', async () => {
    const getter = () => expect.unreachable()
    await expect(resolveCredential({ getter, scope: alpha, origin: 'ftp://x' })).rejects.toThrow(TypeError)
    await expect(resolveCredential({ getter, scope: alpha, origin: 'nonsense' })).rejects.toThrow(TypeError)
    for (const deadlineMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(resolveCredential({ getter, scope: alpha, origin, deadlineMs })).rejects.toThrow(TypeError)
    }
  })
})

describe('no credential', () => {
  test.each([
    ['undefined', undefined],
    ['null', null],
    ['an empty text', ''],
    ['an empty token', { token: '' }],
    ['a token that is undefined', { token: undefined }],
    ['a token that is null', { token: null }],
  ])('CS-09 %s means that there is none, and fails the call', async (_what, answer) => {
    const error = await failure(() => answer as CredentialAnswer)
    expect(error.code).toBe('credential_missing')
    expect((await failure(async () => answer as CredentialAnswer)).code).toBe('credential_missing')
  })

  const boom = new TypeError(`cannot reach https://vault.internal with ${token}`)
  test.each<[string, CredentialGetter]>([
    [
      'throws',
      () => {
        throw boom
      },
    ],
    ['rejects', () => Promise.reject(boom)],
    [
      'answers an object that throws',
      () => ({
        get token(): string {
          throw boom
        },
      }),
    ],
  ])(
    'CS-10 W-10 a hook that %s fails the call; its error is the cause and in no message',
    async (_what, getter) => {
      const error = await failure(getter)
      expect(error.code).toBe('credential_error')
      expect(error.cause).toBe(boom)
      expect(error.message).toBe('The credential hook failed.')
      expect(`${error}${JSON.stringify(error)}`).not.toContain('vault')
    },
  )

  test.each([
    ['white space', ' \t\n', 'is empty'],
    ['a number', 12345678, 'of type number'],
    ['an object without a token', {}, undefined],
    ['a token that is a number', { token: 12345678 }, 'of type number'],
    ['a function', () => token, 'of type function'],
    ['a line break inside', 'sk-alpha\r\nx-evil: 1', 'control'],
    ['a NUL inside', 'sk-alpha-\0-123456', 'control'],
    ['a letter that no header carries', 'sk-alpha-ключ-123', 'non-ASCII'],
    ['something absurdly long', 'k'.repeat(12_289), 'longer'],
    ['something too short to be recognised (W-23)', 'k234567', 'shorter'],
  ])('W-05 %s is refused before anything is sent', async (_what, answer, reason) => {
    const error = await failure(() => answer as CredentialAnswer)
    expect(error.code).toBe(reason === undefined ? 'credential_missing' : 'credential_invalid')
    expect(error.message).toContain(reason ?? 'no credential')
    expect(error.message).not.toContain('alpha')
  })

  test('W-05 white space around a credential is cut off', async () => {
    const secret = await resolveCredential({ getter: () => ` ${token}\n`, scope: alpha, origin })
    const headers: Record<string, string> = {}
    secret.applyTo(headers, new URL(origin), { kind: 'bearer' })
    expect(headers).toEqual({ authorization: `Bearer ${token}` })
  })
})

describe('waiting', () => {
  const never: CredentialGetter = () => new Promise(() => {})

  test('W-06 a hook that never settles ends at its deadline, and hears of it', async () => {
    let heard: AbortSignal | undefined
    const error = await failure(
      (_scope, options) => {
        heard = options?.signal
        return new Promise(() => {})
      },
      { deadlineMs: 5 },
    )
    expect(error.code).toBe('credential_timeout')
    expect(heard?.aborted).toBe(true)
    expect(heard?.reason).toBe(error)
  })

  test('W-06 the call’s signal ends the wait, and the hook hears of it', async () => {
    const control = new AbortController()
    const reason = new DOMException('turn over', 'AbortError')
    let heard: AbortSignal | undefined
    const pending = failure(
      (_scope, options) => {
        heard = options?.signal
        return new Promise(() => {})
      },
      { signal: control.signal },
    )
    await new Promise((done) => setImmediate(done))
    expect(heard?.aborted).toBe(false)
    control.abort(reason)
    const error = await pending
    expect(error.code).toBe('credential_aborted')
    expect(error.cause).toBe(reason)
    expect(heard?.aborted).toBe(true)
  })

  test('W-06 a signal that fired before never reaches the hook', async () => {
    const error = await failure(() => expect.unreachable(), { signal: AbortSignal.abort() })
    expect(error.code).toBe('credential_aborted')
  })

  test('W-06 what a hook answers too late is thrown away, a late rejection too', async () => {
    let fail: (error: Error) => void = () => {}
    const late = new Promise<string>((_resolve, reject) => {
      fail = reject
    })
    const error = await failure(() => late, { deadlineMs: 5 })
    expect(error.code).toBe('credential_timeout')
    const unhandled: unknown[] = []
    const onUnhandled = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', onUnhandled)
    fail(new TypeError('late'))
    await new Promise((done) => setTimeout(done, 10))
    process.off('unhandledRejection', onUnhandled)
    expect(unhandled).toEqual([])
  })

  test('W-06 once the answer is there, its deadline is off', async () => {
    let heard: AbortSignal | undefined
    const getter: CredentialGetter = (_scope, options) => {
      heard = options?.signal
      return token
    }
    await resolveCredential({ getter, scope: alpha, origin, deadlineMs: 5 })
    await new Promise((done) => setTimeout(done, 30))
    expect(heard?.aborted).toBe(false)
  })

  test('W-49 no listener stays on a long-lived signal, however the call ended', async () => {
    const control = new AbortController()
    const counted = countListeners(control.signal)
    await resolveCredential({ getter: () => token, scope: alpha, origin, signal: control.signal })
    await failure(() => Promise.reject(new TypeError('x')), { signal: control.signal })
    await failure(never, { signal: control.signal, deadlineMs: 5 })
    expect(counted()).toBe(0)
  })
})

describe('origins', () => {
  test('CS-16 decision 16: a credential for another origin is refused', async () => {
    const error = await failure(() => ({ token, origin: 'https://other.example.com' }))
    expect(error.code).toBe('credential_origin')
    expect((await failure(() => ({ token, origin: 'nonsense' }))).code).toBe('credential_origin')
    expect((await failure(() => ({ token, origin: 7 }) as never)).code).toBe('credential_origin')
    expect((await failure(() => ({ token, origin: 'http://api.example.com' }))).code).toBe(
      'credential_origin',
    )
  })

  test('CS-16 a credential for this origin is used, its path and default port aside', async () => {
    const getter = () => ({ token, origin: 'https://api.example.com:443/v1' })
    expect((await resolveCredential({ getter, scope: alpha, origin })).origin).toBe(origin)
  })
})

function countListeners(signal: AbortSignal): () => number {
  let count = 0
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    count += 1
    add(...args)
  }
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    count -= 1
    remove(...args)
  }
  return () => count
}
