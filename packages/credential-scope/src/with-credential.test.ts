import { describe, expect, test } from 'vitest'
import { type CredentialGetter, cached, fingerprintOf, type Secret, withCredential } from './index.ts'

const scope = { channel: 'demo:alpha', speaker: { id: 'u-ann', name: 'Ann' } }
const old = 'sk-old-0123456789'
const fresh = 'sk-new-0123456789'

/** A service that accepts one key, and counts. */
function service(accepts: string, refusal = 401) {
  const seen: string[] = []
  const spend = async (secret: Secret) => {
    seen.push(secret.fingerprint)
    return { status: secret.fingerprint === fingerprintOf(accepts) ? 200 : refusal }
  }
  const run = (getter: CredentialGetter) =>
    withCredential({
      getter,
      scope,
      origin: 'https://a.example',
      spend,
      rejectedStatus: ({ status }) => status,
    })
  return { seen, run }
}

describe('withCredential', () => {
  test('W-07 T74 a refused credential is asked for again, told so, and retried once', async () => {
    const { seen, run } = service(fresh)
    const heard: unknown[] = []
    const getter: CredentialGetter = (_scope, request) => {
      heard.push(request?.rejected)
      return request?.rejected === undefined ? old : fresh
    }
    expect(await run(getter)).toEqual({ status: 200 })
    expect(seen).toEqual([fingerprintOf(old), fingerprintOf(fresh)])
    expect(heard).toEqual([undefined, { fingerprint: fingerprintOf(old), status: 401 }])
  })

  test('W-07 what a cache kept is dropped, and the changed key is used', async () => {
    let key = old
    const getter = cached(() => key, { ttlMs: 60_000 })
    expect(await service(old).run(getter)).toEqual({ status: 200 })
    key = fresh
    const { seen, run } = service(fresh, 403)
    expect(await run(getter)).toEqual({ status: 200 })
    expect(seen).toEqual([fingerprintOf(old), fingerprintOf(fresh)])
  })

  test('W-07 T74 the same credential again is not sent again; another refusal ends it', async () => {
    const same = service(fresh)
    expect(await same.run(() => old)).toEqual({ status: 401 })
    expect(same.seen).toHaveLength(1)
    const other = service('sk-neither-0123456789')
    let calls = 0
    expect(await other.run(() => `${old}-${calls++}`)).toEqual({ status: 401 })
    expect(other.seen).toHaveLength(2)
  })

  test('W-07 when there is no other credential, the refusal stands', async () => {
    const { seen, run } = service(fresh)
    const getter: CredentialGetter = (_scope, request) => (request?.rejected === undefined ? old : undefined)
    expect(await run(getter)).toEqual({ status: 401 })
    expect(seen).toHaveLength(1)
  })

  test('any other answer stands, and a first failure is thrown', async () => {
    const { seen, run } = service(fresh, 500)
    expect(await run(() => old)).toEqual({ status: 500 })
    expect(seen).toHaveLength(1)
    await expect(run(() => undefined)).rejects.toMatchObject({ code: 'credential_missing' })
  })
})
