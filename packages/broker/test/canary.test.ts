import { inspect } from 'node:util'
import { gzipSync } from 'node:zlib'
import { canary, findSecret, type UpstreamScript } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { BrokerOptions } from '../src/index.ts'
import { callHeaders } from './support/guest.ts'
import { openRig, turnInput } from './support/rig.ts'
import { chatDelta, event, startStream } from './support/sse.ts'

const ASK = { messages: [{ role: 'user', content: 'hi' }], stream: true }

/** Where a call fails, and how. Scripts get the key as the provider saw it. */
const FAILURES: [what: string, options: Partial<BrokerOptions>, script?: (key: string) => UpstreamScript][] =
  [
    ['a name that nobody knows', { modelUrl: 'https://nowhere.invalid/v1?x=1' }],
    ['nobody there', { modelUrl: 'http://127.0.0.1:1/v1' }],
    [
      'a key for another origin',
      {
        apiKey: (({ channel }) => ({
          token: `${channel}-token-of-it`,
          origin: 'https://x.example',
        })) as BrokerOptions['apiKey'],
      },
    ],
    [
      'a redirect that carries it',
      {},
      (key) => (_, response) => void response.writeHead(302, { location: `/?k=${key}` }).end(key),
    ],
    ...[400, 401, 403, 404, 429, 500, 503].map((status): (typeof FAILURES)[number] => [
      `a ${status} that quotes it, in a header and a body`,
      {},
      (key) => (_, response) =>
        void response
          .writeHead(status, { 'content-type': 'application/json', 'x-request-id': key, 'retry-after': key })
          .end(
            JSON.stringify({
              error: { message: `wrong key ${key}`, [key]: Buffer.from(key).toString('base64') },
            }),
          ),
    ]),
    [
      'what is no JSON',
      {},
      (key) => (_, response) =>
        void response.writeHead(200, { 'content-type': 'application/json' }).end(`{"a":"${key}"`),
    ],
    [
      'what is no stream',
      {},
      (key) => (_, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).end(key),
    ],
    [
      'a coding that is none',
      {},
      (key) => (_, response) => void response.writeHead(200, { 'content-encoding': key }).end('{}'),
    ],
    [
      'a compressed answer that breaks off',
      {},
      (key) => (_, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
          .end(gzipSync(JSON.stringify({ key })).subarray(0, 30)),
    ],
    [
      'a stream that quotes it',
      {},
      (key) => (_, response) => {
        startStream(response)
        response.end(`${chatDelta({ content: 'a' })}: ${key}\nid: ${key}\n${chatDelta({ content: key })}`)
      },
    ],
    [
      'a stream whose error quotes it',
      {},
      (key) => (_, response) => {
        startStream(response)
        response.end(event({ error: { message: `wrong key ${key}` } }, 'error'))
      },
    ],
    [
      'a stream that dies',
      {},
      (key) => (_, response) => {
        startStream(response)
        response.write(`${chatDelta({ content: 'a' })}: ${key}\n`, () => response.destroy())
      },
    ],
  ]

describe('T31 no way to fail tells the key [secret:not-in-guest-bytes] [secret:not-in-host-output]', () => {
  // In the address too: messages about connections love to quote that.
  describe.each<[slot: string, authSlot: NonNullable<BrokerOptions['authSlot']>]>([
    ['in a header', { kind: 'bearer' }],
    ['in the address', { kind: 'query', name: 'key' }],
  ])('a key %s', (_, authSlot) => {
    test.each(FAILURES)('%s', async (_, options, script) => {
      const key = canary()
      const told: unknown[] = []
      await using rig = await openRig({
        apiKey: () => key,
        authSlot,
        onReceipt: (...receipt) => void told.push(receipt),
        ...options,
      })
      if (script !== undefined) rig.upstream.script = script(key)
      const { nonce } = rig.broker.bind(turnInput())
      for (const path of ['/v1/chat/completions', '/model'] as const) {
        using other = rig.guest()
        other.send({ path, headers: callHeaders(nonce), body: ASK })
        expect(
          (await rig.reported((event) => event.name === (path === '/model' ? undefined : 'openai-chat')))
            .reason,
        ).not.toBe('ok')
        await other.until('}')
        expect(findSecret(other.received, key)).toEqual([])
      }
      expect(
        findSecret(Buffer.from(inspect([rig.events, told], { depth: 20, showHidden: true })), key),
      ).toEqual([])
    })
  })
})
