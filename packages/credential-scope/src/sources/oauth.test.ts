import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ScriptedUpstream, scriptedUpstream, tempDir } from '@sandbox/testing'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { refreshingOAuth, resolveCredential, type TokenPair } from '../index.ts'
import { type OAuthEndpoint, oauthEndpoints, refreshAt, tokenStore } from './index.ts'

const scope = { channel: 'demo:alpha', speaker: { id: 'u-ann', name: 'Ann' } }
const pair: TokenPair = { accessToken: 'access-number-0', refreshToken: 'refresh-number-0', expiresAt: 0 }

let dir: ReturnType<typeof tempDir>
let path: string
let server: ScriptedUpstream
let valid: string

/** A token service with one-use refresh tokens. */
beforeEach(async () => {
  dir = tempDir()
  path = join(dir.path, 'login.json')
  valid = pair.refreshToken
  server = await scriptedUpstream((request, response) => {
    if (JSON.parse(request.body).refresh_token !== valid) {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}')
      return undefined
    }
    return rotated()
  })
})
afterEach(async () => {
  await server[Symbol.asyncDispose]()
  dir[Symbol.dispose]()
})

function rotated() {
  valid = `refresh-${randomBytes(6).toString('hex')}`
  return {
    token_type: 'Bearer',
    access_token: `access-${randomBytes(6).toString('hex')}`,
    refresh_token: valid,
    expires_in: 3600,
  }
}

const endpoint = (more: Partial<OAuthEndpoint> = {}): OAuthEndpoint => ({
  url: `${server.url}/oauth/token`,
  clientId: 'client-1',
  body: 'json',
  ...more,
})
const put = (value: unknown, mode = 0o600) => writeFileSync(path, JSON.stringify(value), { mode })

describe('refreshAt', () => {
  const refresh = (more: Partial<OAuthEndpoint> = {}, timeoutMs = 5_000) =>
    refreshAt(endpoint(more), { allowHttp: true, timeoutMs })(pair)

  test('it sends the fields of RFC 6749, as JSON or as a form', async () => {
    expect(await refresh({ fields: { scope: 'a b' } })).toMatchObject({ kind: 'pair' })
    server.script = rotated
    await refresh({ body: 'form' })
    const [json, form] = server.seen
    const fields = { grant_type: 'refresh_token', refresh_token: pair.refreshToken, client_id: 'client-1' }
    expect(json).toMatchObject({
      method: 'POST',
      url: '/oauth/token',
      headers: { 'content-type': 'application/json' },
    })
    expect(JSON.parse(json?.body ?? '')).toEqual({ ...fields, scope: 'a b' })
    expect(form?.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect(Object.fromEntries(new URLSearchParams(form?.body))).toEqual(fields)
  })

  test('the official flows are data: URL, public client, fields', () => {
    expect(oauthEndpoints.anthropic).toEqual({
      url: 'https://platform.claude.com/v1/oauth/token',
      clientId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      body: 'json',
    })
    expect(oauthEndpoints.codex).toMatchObject({ url: 'https://auth.openai.com/oauth/token', body: 'json' })
    for (const one of Object.values(oauthEndpoints)) expect(() => refreshAt(one)).not.toThrow()
  })

  test('a pair: expires_in counts, else the exp of a JWT, else an hour; the old refresh token stays without a new one', async () => {
    const jwt = (claims: string) => `e30x.${Buffer.from(claims).toString('base64url')}.sig`
    const cases: [object, Partial<TokenPair>, number?][] = [
      [
        { access_token: 'access-12345', refresh_token: 'refresh-12345', expires_in: 60 },
        { refreshToken: 'refresh-12345' },
        60_000,
      ],
      [{ access_token: 'access-12345' }, { refreshToken: pair.refreshToken }, 3_600_000],
      [{ access_token: jwt('{"exp":4000000000}') }, { expiresAt: 4_000_000_000_000 }],
      [{ access_token: jwt('{"exp":"x"}') }, {}, 3_600_000],
      [{ access_token: jwt('{') }, {}, 3_600_000],
    ]
    for (const [answer, expected, lifeMs] of cases) {
      server.script = () => answer
      const outcome = await refresh()
      expect(outcome).toMatchObject({ kind: 'pair', pair: expected })
      if (lifeMs === undefined || outcome.kind !== 'pair') continue
      expect(Math.abs(outcome.pair.expiresAt - Date.now() - lifeMs)).toBeLessThan(30_000)
    }
  })

  test.each<[string, number, unknown, 'refused' | 'failed']>([
    ['an invalid grant', 400, { error: 'invalid_grant', error_description: 'x' }, 'refused'],
    ['a nested code on the list', 401, { error: { code: 'refresh_token_reused' } }, 'refused'],
    ['a nested type on the list', 403, { error: { type: 'refresh_token_expired' } }, 'refused'],
    ['another code', 400, { error: 'invalid_client' }, 'failed'],
    ['a nested error without a code', 400, { error: {} }, 'failed'],
    ['no code', 401, {}, 'failed'],
    ['an invalid grant with a status that is none of these', 500, { error: 'invalid_grant' }, 'failed'],
    ['too many requests', 429, { error: 'rate_limited' }, 'failed'],
    ['a page', 200, '<html>', 'failed'],
    ['a list', 200, [1], 'failed'],
    ['null', 200, null, 'failed'],
    ['no access token', 200, { refresh_token: 'refresh-12345' }, 'failed'],
    ['an access token that is none', 200, { access_token: 'a\r\nb: 12345678' }, 'failed'],
    ['a refresh token that is none', 200, { access_token: 'access-12345', refresh_token: 7 }, 'failed'],
    ['an odd life', 200, { access_token: 'access-12345', expires_in: 'soon' }, 'failed'],
    ['no life', 200, { access_token: 'access-12345', expires_in: 0 }, 'failed'],
    ['a success that is none', 201, { access_token: 'access-12345' }, 'failed'],
  ])('T75 %s', async (_what, status, body, kind) => {
    server.script = (_request, response) => {
      response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
    }
    const outcome = await refresh({ refusals: ['refresh_token_reused', 'refresh_token_expired'] })
    expect(outcome.kind).toBe(kind)
    expect(JSON.stringify(outcome)).not.toMatch(/access-|refresh-number/)
  })

  test('a dropped connection, a hanging one, a redirect and an endless answer are failures', async () => {
    server.script = (_request, response) => {
      response.destroy()
    }
    expect(await refresh()).toMatchObject({ kind: 'failed' })
    server.script = () => {}
    expect(await refresh({}, 50)).toMatchObject({ kind: 'failed' })
    server.script = (_request, response) => {
      response.writeHead(307, { location: `${server.url}/elsewhere` }).end()
    }
    expect(await refresh()).toMatchObject({ kind: 'failed' })
    expect(server.seen.some(({ url }) => url === '/elsewhere')).toBe(false)
    server.script = (_request, response) => {
      response.writeHead(200).end(' '.repeat(1024 * 1024 + 1))
    }
    expect(await refresh()).toMatchObject({ kind: 'failed' })
  })

  test('an endpoint that is not https, http on loopback apart, is refused at once', () => {
    for (const url of [
      'http://auth.example/token',
      'https://u:p@auth.example/token',
      'ftp://x/',
      'nonsense',
    ]) {
      expect(() => refreshAt(endpoint({ url }), { allowHttp: true })).toThrow(TypeError)
    }
    expect(() => refreshAt(endpoint({ url: 'http://127.0.0.1/token' }))).toThrow(TypeError)
  })
})

describe('tokenStore', () => {
  test('there is no login without a file', async () => {
    expect(await tokenStore({ path }).read()).toBe(undefined)
  })

  test('a login is replaced in one step, mode 0600, other fields and nothing beside it kept', async () => {
    put({ ...pair, account: 'a-1' })
    const inode = statSync(path).ino
    const store = tokenStore({ path })
    expect(await store.read()).toEqual(pair)
    await store.write({ ...pair, accessToken: 'access-number-1' })
    expect(await store.read()).toEqual({ ...pair, accessToken: 'access-number-1' })
    expect(JSON.parse(readFileSync(path, 'utf8')).account).toBe('a-1')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(path).ino).not.toBe(inode)
    expect(readdirSync(dir.path)).toEqual(['login.json'])
  })

  test('the first login can be written', async () => {
    await tokenStore({ path }).write(pair)
    expect(await tokenStore({ path }).read()).toEqual(pair)
  })

  test('what is no login is an error and never overwritten', async () => {
    for (const text of ['', '[]', 'null', '{"accessToken":', '{"accessToken":"access-secret-1"}']) {
      writeFileSync(path, text, { mode: 0o600 })
      const error = await tokenStore({ path })
        .read()
        .then(
          () => undefined,
          (caught: Error) => caught,
        )
      expect(error).toMatchObject({ code: 'source_invalid' })
      expect(error?.message).not.toContain('secret')
    }
    for (const text of ['{"accessToken":', '[]', 'null', '"x"']) {
      writeFileSync(path, text, { mode: 0o600 })
      await expect(tokenStore({ path }).write(pair)).rejects.toMatchObject({ code: 'source_invalid' })
      expect(readFileSync(path, 'utf8')).toBe(text)
    }
  })

  test('every field of a login must be there', async () => {
    for (const change of [{ accessToken: 7 }, { refreshToken: null }, { expiresAt: '2030' }]) {
      writeFileSync(path, JSON.stringify({ ...pair, ...change }), { mode: 0o600 })
      await expect(tokenStore({ path }).read()).rejects.toThrow(
        /must have accessToken, refreshToken and expiresAt/,
      )
    }
  })

  test('a login that others may read is refused', async () => {
    put(pair, 0o644)
    await expect(tokenStore({ path }).read()).rejects.toThrow(/chmod 0600/)
  })

  test('a write that fails leaves nothing', async () => {
    const gone = join(dir.path, 'gone', 'login.json')
    await expect(tokenStore({ path: gone }).write(pair)).rejects.toThrow()
    await expect(tokenStore({ path: gone }).exclusively(async () => 1)).rejects.toMatchObject({
      code: 'source_invalid',
    })
    expect(readdirSync(dir.path)).toEqual([])
  })
})

describe('all together', () => {
  const login = (more: { lockMs?: number } = {}) =>
    refreshingOAuth({
      store: tokenStore({ path, ...more }),
      refresh: refreshAt(endpoint(), { allowHttp: true, timeoutMs: 5_000 }),
      pauseMs: 0,
    })
  const ask = (getter = login()) =>
    resolveCredential({ getter, scope, origin: 'https://a.example', deadlineMs: 20_000 })

  test('T71 500 parallel calls, one refresh, and the new pair is on the disk', async () => {
    put(pair)
    const getter = login()
    const secrets = await Promise.all(Array.from({ length: 500 }, () => ask(getter)))
    expect(new Set(secrets.map(({ fingerprint }) => fingerprint)).size).toBe(1)
    expect(server.seen).toHaveLength(1)
    expect(JSON.parse(readFileSync(path, 'utf8')).refreshToken).toBe(valid)
    expect(existsSync(`${path}.lock`)).toBe(false)
  })

  test('T71 ten processes with fifty calls each: one refresh, one token', async () => {
    put(pair)
    const worker = new URL('../../test/login-process.ts', import.meta.url)
    const tokens = await Promise.all(
      Array.from(
        { length: 10 },
        () =>
          new Promise<string[]>((resolve, reject) => {
            const child = fork(worker, [path, `${server.url}/oauth/token`])
            child.once('message', (message) => resolve(message as string[]))
            child.once('error', reject)
            child.once('exit', (code) => reject(new TypeError(`exit ${code}`)))
          }),
      ),
    )
    expect(tokens.flat()).toHaveLength(500)
    expect(new Set(tokens.flat()).size).toBe(1)
    expect(server.seen).toHaveLength(1)
    expect(readdirSync(dir.path)).toEqual(['login.json'])
  })

  test('T71 a service whose reply is lost ends in one "log in again"', async () => {
    put(pair)
    const good = server.script
    server.script = (_request, response) => {
      rotated()
      response.destroy()
    }
    const getter = login()
    await expect(ask(getter)).rejects.toMatchObject({
      code: 'credential_error',
      cause: { code: 'source_invalid' },
    })
    server.script = good
    for (let i = 0; i < 3; i++) {
      await expect(ask(getter)).rejects.toMatchObject({ cause: { code: 'login_required' } })
    }
    expect(server.seen).toHaveLength(2)
    expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(pair)
  })
})
