import { canary, findSecret } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { mcpServer, type PrecheckOptions } from '../src/mcp/index.ts'
import type { GuestRequest } from './support/guest.ts'
import { hostileServer, newServer, rpc, toolText } from './support/mcp-servers.ts'
import { APPROVED, CALL, CONTEXT, granted, openRun } from './support/precheck-run.ts'

describe('PC-02 what a script reaches', () => {
  test('only tools that are both granted and approved', async () => {
    await using server = await newServer('json')
    const other = granted(server, { name: 'unapproved', tools: ['echo'] })
    const empty = granted(server, { name: 'empty', tools: ['hidden'] })
    const approved = [
      ...APPROVED,
      { server: 'empty', tools: ['echo'] },
      { server: 'ungranted', tools: ['echo'] },
    ]
    await using run = await openRun({ grant: () => [granted(server), other, empty], approved })
    expect(run.broker.servers).toEqual([{ server: 'My-Notes', tools: ['echo'] }])
    expect((await run.call()).json).toEqual({ jsonrpc: '2.0', id: 1, result: toolText('x') })
    for (const name of ['hidden', 'fail', 'other']) {
      const body = { ...CALL, params: { ...CALL.params, name } }
      expect([name, (await run.call({ body })).status]).toEqual([name, 403])
    }
    for (const path of [
      '/mcp/unapproved',
      '/mcp/empty',
      '/mcp/ungranted',
      '/model',
      '/',
      '/mcp/My-Notes?x=1',
    ]) {
      expect([path, (await run.call({ path })).status]).toEqual([path, 404])
    }
    expect((await run.call({ method: 'GET', body: undefined as never })).status).toBe(404)
    expect(server.seen.filter(({ body }) => body.includes('tools/call'))).toHaveLength(1)
  })

  test('PC-01 the hook is asked once, with a frozen copy of the scope and nothing more', async () => {
    await using server = await newServer('json')
    const scopes: object[] = []
    const context = { ...structuredClone(CONTEXT), tier: 'owner' }
    const grant: PrecheckOptions['grant'] = (scope, { signal }) => {
      scopes.push(scope, signal)
      return [granted(server)]
    }
    await using run = await openRun({ context, grant })
    context.speaker.id = 'u-owner'
    await run.call()
    await run.call()
    expect(scopes).toEqual([CONTEXT, expect.any(AbortSignal)])
    expect(Object.isFrozen(scopes[0])).toBe(true)
  })

  test.each<[string, () => unknown]>([
    ['throws', () => Promise.reject(new TypeError('no'))],
    ['answers with no array', () => undefined],
    ['answers with something else', () => [{ name: 'x', tools: ['a'] }]],
    [
      'names a server twice',
      () => Array(2).fill(mcpServer({ name: 'a', url: 'https://a.example', tools: ['t'] })),
    ],
  ])('a hook that %s opens nothing', async (_, grant) => {
    await expect(openRun({ grant: grant as never })).rejects.toMatchObject({ code: 'grant_failed' })
  })

  test('W-06 a hook that never settles ends with its run', async () => {
    const control = new AbortController()
    const opening = openRun({ grant: () => new Promise(() => {}), signal: control.signal })
    control.abort('over')
    await expect(opening).rejects.toBe('over')
  })
})

describe('PC-04 and W-93 what a run may do [call:bounded]', () => {
  const REFUSED: [string, Partial<GuestRequest>, number][] = [
    ['no route', { path: '/nowhere' }, 404],
    ['a query', { path: '/mcp/My-Notes?x' }, 404],
    ['a strange header', { headers: { 'x-api-key': 'k' } }, 403],
    ['a credential', { headers: { authorization: 'Bearer sk-mine' } }, 403],
    ['another host', { headers: { host: 'evil.example' } }, 403],
    ['no JSON', { body: '{' }, 400],
    ['no call of a listed tool', { body: { method: 'tools/list' } }, 403],
    ['a body over 64 KiB', { body: `"${'x'.repeat(64 * 1024)}"` }, 413],
  ]
  test.each(REFUSED)('%s counts', async (_, request, status) => {
    await using server = await newServer('json')
    await using run = await openRun({ grant: () => [granted(server)], maxCalls: 1 })
    expect((await run.call(request)).status).toBe(status)
    const spent = await run.call()
    expect([spent.status, spent.json.error.code]).toEqual([429, 'budget_spent'])
    expect(server.seen).toEqual([])
    expect(run.events.map((event) => event.status)).toEqual([status, 429])
  })

  test('16 requests by default', async () => {
    await using server = await newServer('json')
    await using run = await openRun({ grant: () => [granted(server)] })
    const statuses: number[] = []
    for (let count = 0; count < 18; count += 1) statuses.push((await run.call({ path: '/x' })).status)
    expect(statuses).toEqual([...Array(16).fill(404), 429, 429])
  })

  test('a second call at the same time is 409', async () => {
    let go = () => {}
    let arrived = () => {}
    const waiting = new Promise<void>((resolve) => {
      arrived = resolve
    })
    await using server = await hostileServer(async ({ message }) => {
      await new Promise<void>((resolve) => {
        go = resolve
        arrived()
      })
      return rpc(message.id, toolText('late'))
    })
    await using run = await openRun({ grant: () => [granted(server)], maxCalls: 3 })
    const first = run.call()
    await waiting
    const second = await run.call()
    expect([second.status, second.json.error.code]).toEqual([409, 'busy'])
    go()
    expect((await first).json.result).toEqual(toolText('late'))
    const third = run.call()
    await expect.poll(() => server.seen.filter(({ body }) => body.includes('tools/call')).length).toBe(2)
    go()
    expect((await third).status).toBe(200)
    expect((await run.call()).status).toBe(429)
  })

  test('an ended run is 410, and its call in flight is aborted', async () => {
    let arrived = () => {}
    const waiting = new Promise<void>((resolve) => {
      arrived = resolve
    })
    await using server = await hostileServer(() => void arrived())
    const control = new AbortController()
    await using run = await openRun({ grant: () => [granted(server)], signal: control.signal })
    const open = run.call()
    await waiting
    control.abort()
    expect((await open).status).toBe(410)
    expect((await run.call()).status).toBe(410)
  })

  test.each([0, 101, 1.5, Number.NaN])('maxCalls %s is refused', async (maxCalls) => {
    await expect(openRun({ grant: () => [], maxCalls })).rejects.toMatchObject({ code: 'options_invalid' })
  })
})

describe('PC-05 to PC-08 a call', () => {
  test('arguments may be left out; what they are is an object', async () => {
    await using server = await hostileServer(({ message }) =>
      rpc(message.id, toolText(JSON.stringify(message.params))),
    )
    await using run = await openRun({ grant: () => [granted(server)] })
    const bare = await run.call({ body: { method: 'tools/call', params: { name: 'echo' } } })
    expect(JSON.parse(bare.json.result.content[0].text)).toEqual({ name: 'echo', arguments: {} })
    for (const given of [[], 'x', null, 1]) {
      const body = { method: 'tools/call', params: { name: 'echo', arguments: given } }
      expect((await run.call({ body })).status).toBe(403)
    }
  })

  test('PC-06 and PC-07 a token per call, of this speaker, and it does not come back', async () => {
    const token = canary()
    const asked: unknown[] = []
    let answer: object = toolText('fine')
    await using server = await hostileServer(({ message }) => rpc(message.id, answer))
    const getter = (scope: unknown) => {
      asked.push(scope)
      return token
    }
    const receipts: string[] = []
    const onReceipt: PrecheckOptions['onReceipt'] = ({ outcome }, { callId }) => {
      receipts.push(`${outcome} ${callId}`)
    }
    await using run = await openRun({ grant: () => [granted(server, { token: getter })], onReceipt })
    expect((await run.call()).status).toBe(200)
    answer = toolText(JSON.stringify({ deep: JSON.stringify([token]) }))
    const stopped = await run.call()
    expect([stopped.status, findSecret(stopped.text, token)]).toEqual([502, []])
    expect(asked).toEqual(Array(2).fill({ ...CONTEXT, server: 'My-Notes' }))
    expect(run.events.map(({ reason }) => reason)).toEqual(['ok', 'reflection'])
    expect(receipts).toEqual(run.events.map(({ callId }) => `ok ${callId}`))
  })

  test('T36 a run without credit calls nothing', async () => {
    await using server = await newServer('json')
    const credit = { reserve: () => ({ granted: false as const }) }
    await using run = await openRun({ grant: () => [granted(server)], credit })
    const answer = await run.call()
    expect([answer.status, answer.json.error.code, server.seen.length]).toEqual([402, 'credit_spent', 0])
  })

  test('W-36 the session ends with the run', async () => {
    await using server = await hostileServer(({ message }) => rpc(message.id, toolText('x')))
    await using run = await openRun({ grant: () => [granted(server)] })
    await run.call()
    await run.broker.stop()
    expect(server.seen.at(-1)).toMatchObject({ method: 'DELETE', headers: { 'mcp-session-id': 's-1' } })
  })

  test('SB-04 without a socket', async () => {
    await using server = await newServer('json')
    await using run = await openRun({ grant: () => [granted(server)] })
    const request = new Request('http://broker/mcp/My-Notes', { method: 'POST', body: JSON.stringify(CALL) })
    expect(await (await run.broker.handle(request)).json()).toMatchObject({ result: toolText('x') })
  })
})
