import { describe, expect, test } from 'vitest'
import type { BoundTurn, BrokerOptions } from '../src/index.ts'
import { callHeaders, type GuestAnswer, type GuestRequest } from './support/guest.ts'
import { openRig, type Rig, turnInput } from './support/rig.ts'

const PATHS = ['/model', '/v1/chat/completions', '/v1/responses'] as const
type Path = (typeof PATHS)[number]
const body = (path: Path) =>
  path === '/v1/responses' ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] }
const URLS = { responsesUrl: 'https://api.example/v1/responses' }

/** A refusal, and how it came about. */
interface Case {
  readonly what: string
  readonly options?: Partial<BrokerOptions>
  readonly request?: Partial<GuestRequest>
  before?(rig: Rig, turn: BoundTurn, path: Path): Promise<void> | void
  readonly status: number
  readonly code: string
  /** Of the OpenAI families. */
  readonly type: string
  readonly retryAfter?: string
  readonly shouldRetry: string | undefined
}

async function call(rig: Rig, nonce: string, path: Path, request: Partial<GuestRequest> = {}) {
  using guest = rig.guest()
  return await guest.call({ path, headers: callHeaders(nonce), body: body(path), ...request })
}

const TOO_LARGE = { body: '', headers: { 'content-length': String(64 * 1024 * 1024) } }

const CASES: Case[] = [
  {
    what: '429 too many at once',
    options: { maxQueuedCalls: 0, maxParallelCalls: 1 },
    before: async (rig, turn, path) => {
      const arrived = new Promise<void>((resolve) => {
        rig.upstream.script = () => {
          resolve()
          return new Promise(() => {})
        }
      })
      // `/v1/responses` has a line with `/v1/chat/completions` in common.
      const first = path === '/model' ? path : '/v1/chat/completions'
      rig.guest().send({ path: first, headers: callHeaders(turn.nonce), body: body(first) })
      await arrived
    },
    status: 429,
    code: 'busy',
    type: 'rate_limit_error',
    retryAfter: '1',
    shouldRetry: undefined,
  },
  {
    what: '429 no calls left',
    options: { maxCalls: 1 },
    before: async (rig, turn) => void (await call(rig, turn.nonce, '/model')),
    status: 429,
    code: 'budget_spent',
    type: 'rate_limit_error',
    shouldRetry: 'false',
  },
  {
    what: '413 a body over the limit',
    request: TOO_LARGE,
    status: 413,
    code: 'body_too_large',
    type: 'invalid_request_error',
    shouldRetry: 'false',
  },
  {
    what: '402 no credit',
    options: { credit: { reserve: () => ({ granted: false, resetsAt: new Date(0) }) } },
    status: 402,
    code: 'credit_spent',
    type: 'insufficient_quota',
    retryAfter: '1',
    shouldRetry: 'false',
  },
  {
    what: '403 a right that was taken back',
    before: (_, turn) => turn.revoke(),
    status: 403,
    code: 'revoked',
    type: 'permission_error',
    shouldRetry: 'false',
  },
  {
    what: '410 a turn that is over',
    before: (_, turn) => turn.release(),
    status: 410,
    code: 'turn_over',
    type: 'invalid_request_error',
    shouldRetry: 'false',
  },
  {
    what: '502 no key',
    options: { apiKey: () => undefined },
    status: 502,
    code: 'no_credential',
    type: 'server_error',
    shouldRetry: 'false',
  },
]

describe.each(PATHS)('issue 4, T24, W-11, W-30: what the broker refuses itself, on %s', (path) => {
  test.each(CASES)('$what', async ({ options, request, before, ...expected }) => {
    await using rig = await openRig({ ...URLS, ...options })
    const turn = rig.broker.bind(turnInput())
    await before?.(rig, turn, path)
    const headers = { ...callHeaders(turn.nonce), ...request?.headers }
    const answer: GuestAnswer = await call(rig, turn.nonce, path, { ...request, headers })
    const { status, code, type, retryAfter, shouldRetry } = expected
    expect(answer.status).toBe(status)
    expect(answer.headers['x-should-retry']).toBe(shouldRetry)
    expect(answer.headers['retry-after']).toBe(retryAfter)
    const message = expect.stringMatching(/^[A-Z].*\.$/)
    expect(answer.json).toEqual({
      error: path === '/model' ? { code, message } : { code, message, type, param: null },
    })
  })
})

describe('T14 and W-13 where the key goes, by configuration', () => {
  test.each<[what: string, slot: BrokerOptions['authSlot'], seen: (key: string) => object, query: boolean]>([
    ['bearer, by default', undefined, (key) => ({ authorization: `Bearer ${key}` }), false],
    ['x-api-key', { kind: 'header', name: 'x-api-key' }, (key) => ({ 'x-api-key': key }), false],
    [
      'any header, in any format',
      { kind: 'header', name: 'X-Vendor-Auth', prefix: 'Token ' },
      (key) => ({ 'x-vendor-auth': `Token ${key}` }),
      false,
    ],
    [
      'basic',
      { kind: 'basic', user: 'bot' },
      (key) => ({ authorization: `Basic ${Buffer.from(`bot:${key}`).toString('base64')}` }),
      false,
    ],
    ['a query parameter', { kind: 'query', name: 'key' }, () => ({}), true],
  ])('%s; no other place has it', async (_, authSlot, seen, query) => {
    await using rig = await openRig(authSlot === undefined ? {} : { authSlot })
    const { nonce } = rig.broker.bind(turnInput())
    const headers = {
      ...callHeaders(nonce),
      authorization: 'Bearer of-the-guest',
      'x-api-key': 'of-the-guest',
      'x-vendor-auth': 'of-the-guest',
    }
    expect((await call(rig, nonce, '/v1/chat/completions', { headers })).status).toBe(200)
    const [request] = rig.upstream.seen
    expect(request?.headers).toMatchObject(seen(rig.secret))
    const plain = ['accept', 'connection', 'content-length', 'content-type', 'host']
    expect(Object.keys(request?.headers ?? {}).sort()).toEqual([...plain, ...Object.keys(seen(''))].sort())
    const key = new URL(request?.url ?? '', 'http://x').searchParams.get('key')
    expect(key).toBe(query ? rig.secret : null)
    expect(JSON.stringify(request)).not.toContain('of-the-guest')
  })
})
