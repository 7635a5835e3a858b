import { chatText } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { BrokerOptions, CallCredit, CallEvent, CreditAnswer, CreditCall } from '../src/index.ts'
import { mcpServer } from '../src/mcp/index.ts'
import { callHeaders } from './support/guest.ts'
import { newServer } from './support/mcp-servers.ts'
import { openRig, type Rig, turnInput } from './support/rig.ts'

/** Accounts in tokens, as a host may keep them: what a call may cost is taken first, and what it did not is given back. */
class Accounts implements CallCredit {
  left: number
  readonly asked: CreditCall[] = []
  readonly settled: CallEvent[] = []
  resetsAt: Date | undefined

  constructor(left: number) {
    this.left = left
  }

  reserve(call: CreditCall): CreditAnswer {
    this.asked.push(call)
    const most = call.outputTokens ?? 1
    if (this.left < most) return { granted: false, ...(this.resetsAt && { resetsAt: this.resetsAt }) }
    this.left -= most
    return {
      granted: true,
      settle: (event) => {
        this.settled.push(event)
        this.left += most - (event.usage?.outputTokens ?? 0)
      },
    }
  }
}

const PATHS = ['/model', '/v1/chat/completions', '/v1/responses'] as const
const body = (path: string) =>
  path === '/v1/responses' ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] }

async function call(rig: Rig, nonce: string, path: string, input: object = body(path)) {
  using guest = rig.guest()
  return await guest.call({ path, headers: callHeaders(nonce), body: input })
}

const open = (credit: CallCredit, more: Partial<BrokerOptions> = {}) =>
  openRig({ credit, responsesUrl: 'https://api.example/v1/responses', maxOutputTokens: 10, ...more })

describe('issue 4 and T36 no credit, no call', () => {
  test.each(PATHS)('%s: 402 in the family’s shape; no credential, no upstream', async (path) => {
    let keys = 0
    const accounts = new Accounts(9)
    await using rig = await open(accounts, { apiKey: () => `key-${keys++}-of-the-account` })
    const { nonce, scope } = rig.broker.bind(turnInput())
    const answer = await call(rig, nonce, path)
    expect([answer.status, answer.headers['x-should-retry']]).toEqual([402, 'false'])
    expect(answer.headers['retry-after']).toBeUndefined()
    const message = 'There is no credit left for this channel and speaker.'
    const short = { code: 'credit_spent', message }
    expect(answer.json.error).toEqual(
      path === '/model' ? short : { ...short, type: 'insufficient_quota', param: null },
    )
    expect([keys, rig.upstream.seen.length]).toEqual([0, 0])
    expect(accounts.asked).toMatchObject([{ scope, route: 'model', model: 'host-model', outputTokens: 10 }])
    expect(Object.isFrozen(accounts.asked[0]?.scope)).toBe(true)
    expect(rig.events).toMatchObject([{ status: 402, reason: 'credit_spent' }])
    expect(accounts.settled).toEqual([])
  })

  test('tools and MCP servers stand behind the same gate', async () => {
    await using server = await newServer('json')
    let ran = 0
    const tool = { name: 'look', description: '', parameters: {}, execute: () => `${ran++}` }
    const mcp = [mcpServer({ name: 'notes', url: server.url, tools: ['echo'], allowHttp: true })]
    const accounts = new Accounts(0)
    await using rig = await open(accounts, { tools: [tool], mcp })
    const { nonce } = rig.broker.bind(turnInput())
    const echo = { method: 'tools/call', params: { name: 'echo', arguments: { text: 'x' } } }
    expect((await call(rig, nonce, '/tools/look', {})).status).toBe(402)
    expect((await call(rig, nonce, '/mcp/notes', echo)).status).toBe(402)
    expect(accounts.asked.map(({ route, name }) => `${route} ${name}`)).toEqual([
      'tool look',
      'mcp notes/echo',
    ])
    expect([ran, server.seen.length]).toEqual([0, 0])
    accounts.left = 2
    expect((await call(rig, nonce, '/tools/look', {})).status).toBe(200)
    expect((await call(rig, nonce, '/mcp/notes', echo)).status).toBe(200)
  })

  test('a call that is refused for something else asks for none', async () => {
    const accounts = new Accounts(0)
    await using rig = await open(accounts)
    const { nonce } = rig.broker.bind(turnInput())
    expect((await call(rig, nonce, '/model', { messages: 1 })).status).toBe(400)
    expect((await call(rig, nonce, '/v1/chat/completions', {})).status).toBe(400)
    expect(accounts.asked).toEqual([])
  })

  test('T24 and T40 when there will be credit again: a header for the client, a time for the host', async () => {
    const accounts = new Accounts(0)
    accounts.resetsAt = new Date(Date.now() + 3_600_000)
    await using rig = await open(accounts)
    const { nonce } = rig.broker.bind(turnInput())
    const waits = [await call(rig, nonce, '/model'), await call(rig, nonce, '/v1/chat/completions')].map(
      ({ headers }) => Number(headers['retry-after']),
    )
    for (const seconds of waits) {
      expect(seconds).toBeGreaterThan(3500)
      expect(seconds).toBeLessThanOrEqual(3600)
    }
    expect(rig.events[0]?.resetsAtMs).toBe(accounts.resetsAt.getTime())
    accounts.resetsAt = new Date(0)
    expect((await call(rig, nonce, '/model')).headers['retry-after']).toBe('1')
    accounts.resetsAt = new Date(Number.NaN)
    expect((await call(rig, nonce, '/model')).headers['retry-after']).toBeUndefined()
  })
})

describe('T38 what is reserved and what is spent', () => {
  test('100 calls at once with credit for one: one is made', async () => {
    const accounts = new Accounts(19)
    const rigs = await Promise.all(Array.from({ length: 5 }, () => open(accounts, { maxQueuedCalls: 64 })))
    const usage = { prompt_tokens: 1, completion_tokens: 10 }
    try {
      for (const { upstream } of rigs) upstream.script = () => ({ ...chatText('x'), usage })
      const statuses = await Promise.all(
        rigs.flatMap((rig) => {
          const { nonce } = rig.broker.bind(turnInput())
          return Array.from({ length: 20 }, async () => {
            // 16 connections are all that one broker takes.
            const request = new Request('http://broker/v1/chat/completions', {
              method: 'POST',
              headers: callHeaders(nonce),
              body: JSON.stringify(body('')),
            })
            return (await rig.broker.handle(request)).status
          })
        }),
      )
      expect(statuses.sort()).toEqual([200, ...Array(99).fill(402)])
      expect(rigs.flatMap((rig) => rig.upstream.seen)).toHaveLength(1)
      // Spent as enforced, as settled, and as the host was told.
      const told = rigs
        .flatMap((rig) => rig.events)
        .reduce((sum, event) => sum + (event.usage?.outputTokens ?? 0), 0)
      const settled = accounts.settled.reduce((sum, event) => sum + (event.usage?.outputTokens ?? 0), 0)
      expect([19 - accounts.left, settled, told]).toEqual([10, 10, 10])
    } finally {
      for (const rig of rigs) await rig[Symbol.asyncDispose]()
    }
  })

  test('settled once, with the very event that the host hears of', async () => {
    const accounts = new Accounts(10)
    await using rig = await open(accounts)
    const { nonce } = rig.broker.bind(turnInput())
    expect((await call(rig, nonce, '/v1/chat/completions')).status).toBe(200)
    await expect.poll(() => accounts.settled.length).toBe(1)
    expect(accounts.settled).toEqual(rig.events)
    expect(accounts.settled[0]).toMatchObject({ reason: 'ok', usage: { outputTokens: 3 } })
    expect(accounts.left).toBe(7)
  })

  test('W-07 a key that is refused and another one that is tried are one call', async () => {
    const accounts = new Accounts(100)
    let keys = 0
    await using rig = await open(accounts, { apiKey: () => `key-${keys++}-of-the-account` })
    rig.upstream.script = (_, response) => {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{}')
    }
    const { nonce } = rig.broker.bind(turnInput())
    expect((await call(rig, nonce, '/v1/chat/completions')).status).toBe(401)
    expect([keys, accounts.asked.length]).toEqual([2, 1])
    await expect.poll(() => accounts.left).toBe(100)
  })

  test('a call that is aborted is settled too, also when the accounts answer only then', async () => {
    const settled: string[] = []
    let answer = (_: CreditAnswer) => {}
    let arrived = () => {}
    const waiting = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const credit: CallCredit = {
      reserve: () =>
        new Promise((resolve) => {
          answer = resolve
          arrived()
        }),
    }
    await using rig = await open(credit)
    const turn = rig.broker.bind(turnInput())
    const made = call(rig, turn.nonce, '/model')
    await waiting
    turn.release()
    expect((await made).status).toBe(410)
    answer({ granted: true, settle: (event) => settled.push(event.reason) })
    await expect.poll(() => settled).toEqual(['turn_over'])
    expect(rig.upstream.seen).toEqual([])
  })
})

test.each<[what: string, credit: CallCredit]>([
  [
    'throw',
    {
      reserve: () => {
        throw new TypeError('secret text')
      },
    },
  ],
  ['reject', { reserve: () => Promise.reject(new TypeError('secret text')) }],
  ['answer with something else', { reserve: () => ({}) as never }],
  ['answer with nothing', { reserve: () => undefined as never }],
])('T37 accounts that %s make no call [call:generic-errors]', async (_, credit) => {
  await using rig = await open(credit)
  const { nonce } = rig.broker.bind(turnInput())
  const answer = await call(rig, nonce, '/model')
  expect([answer.status, answer.json.error.code]).toEqual([502, 'call_failed'])
  expect(answer.text).not.toContain('secret text')
  expect(rig.upstream.seen).toEqual([])
  expect(rig.events).toMatchObject([{ reason: 'credit_error' }])
})
