import { Secret } from '@sandbox/credential-scope'
import { scriptedUpstream } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { sharedAgent } from '../engine/upstream/open-upstream.ts'
import { HttpWire, WIRE_LIMITS } from './http-wire.ts'

const NEVER = new AbortController().signal

async function openWire() {
  const upstream = await scriptedUpstream(() => ({ ok: true }))
  const url = new URL(`${upstream.url}/mcp`)
  const wire = new HttpWire({
    agent: sharedAgent(),
    url,
    authSlot: { kind: 'bearer' },
    limits: WIRE_LIMITS,
  })
  const secret = new Secret({ token: 'tok-0123456789', origin: url.origin })
  return { upstream, url, wire, secret, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() }
}

test('SB-24 only the protocol’s own headers travel, and the credential is that of the use', async () => {
  await using own = await openWire()
  own.wire.begin({ secret: own.secret, signal: NEVER })
  const headers = {
    authorization: 'Bearer another',
    cookie: 'a=b',
    'x-trace': '1',
    'user-agent': 'client/1',
    'mcp-method': 'tools/call',
    'mcp-param-city': 'Oslo',
    'content-type': 'application/json',
  }
  const answer = await own.wire.fetch(own.url, { method: 'POST', headers, body: '{}' })
  expect(await answer.json()).toEqual({ ok: true })
  const { host: _, connection: __, ...sent } = own.upstream.seen[0]?.headers ?? {}
  expect(sent).toEqual({
    authorization: 'Bearer tok-0123456789',
    'content-length': '2',
    'content-type': 'application/json',
    'mcp-method': 'tools/call',
    'mcp-param-city': 'Oslo',
  })
})

test('decision 16: no other address is reached, whatever the client wants', async () => {
  await using own = await openWire()
  await using other = await scriptedUpstream(() => ({ ok: true }))
  for (const target of [other.url, `${own.upstream.url}/.well-known/oauth-protected-resource`]) {
    own.wire.begin({ secret: own.secret, signal: NEVER })
    await expect(own.wire.fetch(target, { method: 'POST', body: '{}' })).rejects.toThrow('internal')
  }
  expect([...own.upstream.seen, ...other.seen]).toEqual([])
})

test('a stream that nobody asked for is not opened; one that resumes an answer is', async () => {
  await using own = await openWire()
  own.wire.begin({ signal: NEVER })
  expect((await own.wire.fetch(own.url, { method: 'GET' })).status).toBe(405)
  expect(own.upstream.seen).toEqual([])
  const resumed = await own.wire.fetch(own.url, { method: 'GET', headers: { 'last-event-id': 'e-1' } })
  await resumed.body?.cancel()
  expect(own.upstream.seen.map(({ headers }) => headers['last-event-id'])).toEqual(['e-1'])
})

test('nothing is sent once a use is over', async () => {
  await using own = await openWire()
  own.wire.begin({ secret: own.secret, signal: NEVER }).end()
  await expect(own.wire.fetch(own.url, { method: 'POST', body: '{}' })).rejects.toThrow('aborted')
  expect(own.upstream.seen).toEqual([])
})
