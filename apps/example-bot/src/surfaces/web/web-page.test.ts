import { type IncomingMessage, request } from 'node:http'
import type { ChannelKey } from '@sandbox/roundtable-plugin'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Ledger } from '../../ledger.ts'
import { Room } from '../room.ts'
import { openWebPage, type WebPage } from './web-page.ts'

const CHANNELS = [
  { key: 'demo:a', title: 'a', about: '', speakers: [{ id: 'u-1', name: 'Ann' }] },
  { key: 'demo:b', title: 'b', about: '', speakers: [{ id: 'u-1', name: 'Ann' }] },
] as const

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

let page: WebPage
let room: Room
let ledger: Ledger
let stopped: string[]
let on: Set<ChannelKey>

const explain = ({ channel }: { channel: string }) =>
  channel === 'demo:a'
    ? { rule: 'channel demo:a', source: 'file:./a.key', fingerprint: 'aabbccdd' }
    : { rule: undefined, source: undefined, fingerprint: undefined }

beforeEach(async () => {
  stopped = []
  on = new Set(['demo:a'])
  ledger = new Ledger({ explain })
  room = new Room({ prefix: 'demo', channels: CHANNELS, turnOf: (channel) => ledger.latest(channel)?.turnId })
  await room.start(async (message) => {
    const turn = {
      turnId: message.messageId,
      channel: message.channel,
      speaker: { id: message.authorId, name: message.authorName },
      driver: 'process' as const,
      durationMs: 7,
    }
    ledger.onTurn({ ...turn, state: 'admitted' })
    const typed = room.startTyping(message.channel)
    ledger.onCall({
      callId: '1',
      turnId: message.messageId,
      scope: { channel: message.channel, speaker: turn.speaker },
      route: 'model',
      status: 200,
      reason: 'ok',
      requestBytes: 1,
      answerBytes: 1,
      durationMs: 1,
      droppedFields: [],
      fingerprint: 'aabbccdd',
      usage: { inputTokens: 2, outputTokens: 3 },
    })
    typed()
    await room.sendReply(message.channel, { chunks: [`you said ${message.text}`] })
    ledger.onTurn({ ...turn, state: 'settled', ok: true })
  })
  page = await openWebPage({
    room,
    ledger,
    explain,
    driver: { kind: 'process', isolation: 'none' },
    stop: (channel) => stopped.push(channel) > 0,
    sandbox: {
      isOn: (channel) => on.has(channel),
      set: async (channel, wanted) => {
        if (wanted) on.add(channel)
        else on.delete(channel)
        return 'done'
      },
    },
    beatMs: 20,
    port: 0,
  })
})

afterEach(() => page.close())

function call(
  path: string,
  options: { method?: string; headers?: object; body?: string } = {},
): Promise<Answer> {
  return new Promise((done, fail) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port: page.port,
        path,
        method: options.method ?? 'GET',
        headers: { ...options.headers },
        agent: false,
      },
      async (incoming) => {
        const chunks: Buffer[] = []
        for await (const chunk of incoming) chunks.push(chunk as Buffer)
        done({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          text: Buffer.concat(chunks).toString('utf8'),
        })
      },
    )
    sent.on('error', fail)
    sent.end(options.body)
  })
}

const token = () => ({ 'x-demo-token': page.token })
const post = (path: string, body: unknown, headers: object = token()) =>
  call(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const say = (text: string, headers?: object) =>
  post('/api/messages', { channel: 'demo:a', speaker: 'u-1', text }, headers)

/** Reads events from the page as a browser does, until `enough`. */
async function events(
  enough: (type: string, data: Record<string, unknown>) => boolean,
  begin?: () => unknown,
) {
  const response = await fetch(`http://127.0.0.1:${page.port}/api/events`, { headers: token() })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const seen: { type: string; data: Record<string, unknown> }[] = []
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk)
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const [, type = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? []
      const value = JSON.parse(data) as Record<string, unknown>
      seen.push({ type, data: value })
      if (type === 'snapshot') await begin?.()
      if (enough(type, value)) return seen
    }
  }
  return seen
}

describe('what the page serves', () => {
  test.each(['/', '/page.css', '/page.js', '/icon.svg'])(
    '%s carries a policy without inline scripts and styles',
    async (path) => {
      const answer = await call(path)
      expect(answer.status).toBe(200)
      const policy = String(answer.headers['content-security-policy'])
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("script-src 'self'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/unsafe|\*|data:|http/)
      expect(answer.headers['x-content-type-options']).toBe('nosniff')
      expect(answer.headers['referrer-policy']).toBe('no-referrer')
      expect(answer.headers['cache-control']).toBe('no-store')
    },
  )

  test('the page itself holds no token, no inline script and no inline style', async () => {
    const { text } = await call('/')
    expect(text).not.toContain(page.token)
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=/)
  })

  test('refusals carry the policy too', async () => {
    for (const answer of [await call('/nothing'), await call('/api/events'), await call('/../errors.ts')]) {
      expect(answer.status).toBeGreaterThanOrEqual(400)
      expect(answer.headers['content-security-policy']).toContain("default-src 'none'")
    }
  })

  test('it listens on loopback only, and its address keeps the token behind the #', async () => {
    expect(page.address).toBe(`http://127.0.0.1:${page.port}/#${page.token}`)
    expect(page.token.length).toBeGreaterThanOrEqual(32)
    // Bound to every address, it would answer on this one too.
    await expect(fetch(`http://127.0.0.2:${page.port}/`)).rejects.toThrow()
  })
})

describe('who may talk to it', () => {
  test.each(['/api/events', '/api/key?channel=demo:a&speaker=u-1'])(
    '%s without or with a wrong token is 403',
    async (path) => {
      expect((await call(path)).status).toBe(403)
      const wrong = await call(path, { headers: { 'x-demo-token': `${page.token.slice(1)}x` } })
      expect(wrong.status).toBe(403)
      expect(JSON.parse(wrong.text).error).toEqual({
        code: 'token_refused',
        message: 'Open the address that the bot printed: it holds the key to this page.',
      })
    },
  )

  test('a message with a wrong token is 403 and reaches nobody', async () => {
    expect((await say('hi', { 'x-demo-token': 'wrong' })).status).toBe(403)
    expect(room.entries()).toEqual([])
  })

  test.each([
    'evil.example',
    'evil.example:80',
    '127.0.0.1.evil.example',
    '10.0.0.1',
    'localhost.evil.example:1',
  ])('a foreign host name is 403 on every path: "%s"', async (host) => {
    for (const path of ['/', '/page.js', '/api/events']) {
      const answer = await call(path, { headers: { host, ...token() } })
      expect([400, 403]).toContain(answer.status)
    }
  })

  test.each(['localhost', 'LOCALHOST:9999', '127.0.0.1:1', '[::1]:8080'])(
    '%s is this machine',
    async (host) => {
      expect((await call('/', { headers: { host } })).status).toBe(200)
    },
  )

  test.each([
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: 'http://127.0.0.1:1' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
  ])('a message from another site is 403, even with the token: %o', async (headers) => {
    const answer = await say('hi', { ...token(), ...headers })
    expect(answer.status).toBe(403)
    expect(JSON.parse(answer.text).error.code).toBe('origin_refused')
    expect(room.entries()).toEqual([])
  })

  test('the page of this origin may', async () => {
    const own = { origin: `http://127.0.0.1:${page.port}`, 'sec-fetch-site': 'same-origin' }
    expect((await say('hi', { ...token(), ...own })).status).toBe(202)
  })
})

describe('messages', () => {
  test('one goes in and the reply comes out, with the turn and who paid', async () => {
    const seen = await events(
      (type, data) => type === 'turn' && (data.receipt as { state: string }).state === 'settled',
      () => say('hello <b>&'),
    )
    expect(seen[0]).toMatchObject({
      type: 'snapshot',
      data: { driver: { kind: 'process', isolation: 'none' }, entries: [], channels: CHANNELS },
    })
    const entries = seen.filter(({ type }) => type === 'entry').map(({ data }) => data.entry)
    expect(entries).toMatchObject([
      { kind: 'message', author: 'Ann', channel: 'demo:a', text: 'hello <b>&' },
      { kind: 'reply', channel: 'demo:a', text: 'you said hello <b>&' },
    ])
    const last = seen.at(-1)?.data.receipt
    expect(last).toMatchObject({
      ok: true,
      turnId: (entries[1] as { turnId: string }).turnId,
      payments: [{ fingerprint: 'aabbccdd', rule: 'channel demo:a', source: 'file:./a.key', calls: 1 }],
      modelCalls: 1,
      tokens: { input: 2, output: 3 },
    })
  })

  test('a page that comes later gets what was said', async () => {
    await say('before')
    const [snapshot] = await events((type) => type === 'snapshot')
    expect(snapshot?.data.entries).toMatchObject([{ text: 'before' }, { text: 'you said before' }])
    expect(snapshot?.data.receipts).toHaveLength(1)
  })

  test('a page that left is forgotten', async () => {
    const left = new AbortController()
    const response = await fetch(`http://127.0.0.1:${page.port}/api/events`, {
      headers: token(),
      signal: left.signal,
    })
    const reader = response.body?.getReader()
    await reader?.read()
    expect(room.listening).toBe(1)
    left.abort()
    await reader?.read().catch(() => undefined)
    await expect.poll(() => room.listening).toBe(0)
  })

  test('the longest history there can be is told at once, and the line stays open', async () => {
    const turn = {
      channel: 'demo:a',
      speaker: { id: 'u-1', name: 'Ann' },
      driver: 'docker',
      durationMs: 1,
    } as const
    for (let n = 0; n < 200; n += 1) {
      await room.sendReply('demo:a', { chunks: ['\u0001'.repeat(32_000)] })
      ledger.onTurn({ ...turn, turnId: `t${n}`, state: 'admitted' })
      for (let call = 0; call < 50; call += 1) {
        ledger.onCall({
          callId: `c${call}`,
          turnId: `t${n}`,
          scope: turn,
          route: 'tool',
          name: '\u0001'.repeat(16_000),
          status: 404,
          reason: 'not_found',
          requestBytes: 1,
          answerBytes: 1,
          durationMs: 1,
          droppedFields: [],
        })
      }
    }
    const seen = await events(
      (type, data) => type === 'entry' && (data.entry as { text: string }).text === 'still there',
      () => room.sendReply('demo:a', { chunks: ['still there'] }),
    )
    expect(seen[0]?.type).toBe('snapshot')
  })

  test.each([
    ['no JSON', '{', 400],
    ['no object', 'null', 400],
    ['missing text', { channel: 'demo:a', speaker: 'u-1' }, 400],
    ['a number', { channel: 'demo:a', speaker: 'u-1', text: 7 }, 400],
    ['blank', { channel: 'demo:a', speaker: 'u-1', text: ' \n' }, 422],
    ['an unknown channel', { channel: 'demo:z', speaker: 'u-1', text: 'x' }, 422],
    ['an unknown speaker', { channel: 'demo:a', speaker: 'u-9', text: 'x' }, 422],
    ['too long', { channel: 'demo:a', speaker: 'u-1', text: 'x'.repeat(32_001) }, 422],
    ['a huge body', { channel: 'demo:a', speaker: 'u-1', text: 'x'.repeat(300_000) }, 413],
  ])('%s is refused and reaches nobody', async (_, body, status) => {
    expect((await post('/api/messages', body)).status).toBe(status)
    expect(room.entries()).toEqual([])
  })

  test('a closed bot refuses', async () => {
    await room.stop()
    expect((await say('hi')).status).toBe(422)
  })

  test('stop reaches the bot, for known channels only', async () => {
    expect(JSON.parse((await post('/api/stop', { channel: 'demo:b' })).text)).toEqual({ stopped: true })
    expect(JSON.parse((await post('/api/stop', { channel: 'demo:z' })).text)).toEqual({ stopped: false })
    expect(stopped).toEqual(['demo:b'])
  })

  test('the sandbox of a channel is turned off and on, for known channels only', async () => {
    const turn = async (body: object) => {
      const { status, text } = await post('/api/sandbox', body)
      return [status, JSON.parse(text)]
    }
    expect(await turn({ channel: 'demo:a', on: false })).toEqual([200, { told: 'done', on: [] }])
    expect(await turn({ channel: 'demo:b', on: true })).toEqual([200, { told: 'done', on: ['demo:b'] }])
    expect((await turn({ channel: 'demo:z', on: true }))[0]).toBe(422)
    expect((await turn({ channel: 'demo:b', on: 'yes' }))[0]).toBe(400)
    expect((await post('/api/sandbox', { channel: 'demo:b', on: false }, {})).status).toBe(403)
    expect([...on]).toEqual(['demo:b'])
  })

  test('a beat tells what was turned on elsewhere', async () => {
    const seen = await events(
      (type, data) => type === 'beat' && (data.on as string[]).includes('demo:b'),
      () => on.add('demo:b'),
    )
    expect(seen.at(-1)?.data).toEqual({ on: ['demo:a', 'demo:b'] })
  })

  test('a growing answer is told as it is after a pause, not piece by piece', async () => {
    const text = 'x'.repeat(500)
    const seen = await events(
      (type) => type === 'draft',
      () => {
        room.startTyping('demo:a')
        for (let n = 1; n <= text.length; n += 1) room.draft('demo:a', text.slice(0, n))
      },
    )
    expect(seen.at(-1)?.data).toEqual({ draft: { channel: 'demo:a', text } })
  })

  test('a file of a reply is saved, never shown, and only with the token', async () => {
    const data = new TextEncoder().encode('<script>alert(1)</script>')
    await room.sendReply('demo:a', { chunks: ['here'], files: [{ name: 'a"\r\nx: y;ü.html', data }] })
    const id = room.entries()[0]?.files?.[0]?.id
    expect((await call(`/api/files/${id}`)).status).toBe(403)
    const answer = await call(`/api/files/${id}`, { headers: token() })
    expect(answer.text).toBe('<script>alert(1)</script>')
    expect(answer.headers['content-type']).toBe('application/octet-stream')
    expect(answer.headers['content-disposition']).toMatch(
      /^attachment; filename\*=UTF-8''a%22[\w%.-]+%C3%BC\.html$/,
    )
    expect(answer.headers['x-content-type-options']).toBe('nosniff')
    expect((await call('/api/files/none', { headers: token() })).status).toBe(404)
  })

  test('explains who pays, and says so when nobody does', async () => {
    const ask = async (channel: string) =>
      JSON.parse((await call(`/api/key?channel=${channel}&speaker=u-1`, { headers: token() })).text)
    expect(await ask('demo:a')).toEqual({
      rule: 'channel demo:a',
      source: 'file:./a.key',
      fingerprint: 'aabbccdd',
    })
    expect(await ask('demo:b')).toEqual({ rule: null, source: null, fingerprint: null })
  })
})

describe('lifetime', () => {
  test('a taken port is refused with what to do', async () => {
    const options = {
      room,
      ledger,
      explain,
      driver: { kind: 'docker', isolation: 'container' },
      stop: () => false,
    } as const
    await expect(openWebPage({ ...options, port: page.port })).rejects.toThrow(
      `Port ${page.port} of 127.0.0.1 is taken: choose another with --port`,
    )
  })

  test('another address and name than those of this machine, when told so', async () => {
    const options = {
      room,
      ledger,
      explain,
      driver: { kind: 'docker', isolation: 'container' },
      stop: () => false,
      port: 0,
    } as const
    const other = await openWebPage({ ...options, listenOn: '127.0.0.2', hostNames: ['bot.example'] })
    try {
      expect(other.address).toMatch(/^http:\/\/bot\.example:\d+\/#/)
      const status = (host: string, headers = {}) =>
        new Promise<number>((done) =>
          request(
            { host: '127.0.0.2', port: other.port, path: '/', headers: { host, ...headers } },
            (incoming) => {
              incoming.resume()
              done(incoming.statusCode ?? 0)
            },
          ).end(),
        )
      expect(await status('bot.example')).toBe(200)
      expect(await status('evil.example')).toBe(403)
    } finally {
      await other.close()
    }
    await expect(openWebPage({ ...options, token: 'short' })).rejects.toThrow('it needs 32')
  })

  test('closing ends open event streams', async () => {
    const response = await fetch(`http://127.0.0.1:${page.port}/api/events`, { headers: token() })
    await page.close()
    await expect(response.text()).rejects.toThrow()
    expect(room.listening).toBe(0)
  })
})
