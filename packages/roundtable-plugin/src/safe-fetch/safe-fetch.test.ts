import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { tempDir } from '@sandbox/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { SafeFetchError } from './errors.ts'
import type { NetworkPorts, SafeFetchOptions } from './options.ts'
import { isPublicAddress } from './public-address.ts'
import { assertPublicUrl, createSafeFetcher, safeFetch } from './safe-fetch.ts'

/** Names of the test, and 127.0.0.1 and 127.0.0.2 as if they were public; everything else is judged as it is. */
function network(names: Record<string, readonly string[]> = {}, more: Partial<NetworkPorts> = {}) {
  const asked: string[] = []
  const fetcher = createSafeFetcher({
    resolve: async (host) => {
      asked.push(host)
      return names[host] ?? []
    },
    ownAddresses: () => [],
    isPublic: (address) => address === '127.0.0.1' || address === '127.0.0.2' || isPublicAddress(address),
    ...more,
  })
  return { ...fetcher, asked }
}

async function listening(
  server: Server | ReturnType<typeof createTcpServer>,
  host = '127.0.0.1',
): Promise<number> {
  server.listen(0, host)
  await once(server, 'listening')
  onTestFinished(async () => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

/** A server of the test; `requests` is what it was asked. */
async function site(
  answer: RequestListener,
): Promise<{ port: number; origin: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = []
  const port = await listening(
    createServer((request, response) => {
      requests.push(request)
      answer(request, response)
    }),
  )
  return { port, origin: `http://127.0.0.1:${port}`, requests }
}

/** A certificate for one name, made now and good for a day: PEM, and the key that goes with it. */
function certificateOf(name: string): { key: Buffer; ca: string } {
  using dir = tempDir()
  const [key, cert] = [join(dir.path, 'key.pem'), join(dir.path, 'cert.pem')]
  const kind = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1'.split(' ')
  const named = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`]
  execFileSync('openssl', [...kind, '-keyout', key, '-out', cert, ...named], { stdio: 'ignore' })
  return { key: readFileSync(key), ca: readFileSync(cert, 'utf8') }
}

function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'none',
    (error: unknown) => (SafeFetchError.isInstance(error) ? error.code : `other: ${String(error)}`),
  )
}

describe('what may be asked', () => {
  test.each([
    'file:///etc/passwd',
    'gopher://127.0.0.1/',
    'ftp://example.com/',
    'data:text/plain,x',
    'not a url',
    '',
    'http://user:pass@example.com/',
    'https://user@example.com/',
  ])('SF-01 %j is refused before anything is looked up', async (url) => {
    const { safeFetch, assertPublicUrl, asked } = network()
    expect(await codeOf(safeFetch(url))).toBe('unsafe_url')
    expect(await codeOf(assertPublicUrl(url))).toBe('unsafe_url')
    expect(asked).toEqual([])
  })

  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://169.254.169.254/latest/meta-data/',
    'http://localhost/',
    'http://a.localhost/',
    'http://LOCALHOST./',
  ])('SF-06 %s is non-public, by the fetcher that people get', async (url) => {
    await expect(safeFetch(url)).rejects.toThrow(/non-public/)
    await expect(assertPublicUrl(url)).rejects.toThrow(/non-public/)
  })

  test('SF-03 a name with one private number among public ones is refused, and nobody is connected to', async () => {
    const { port, requests } = await site((_request, response) => response.end('x'))
    const { safeFetch } = network({ 'mixed.test': ['127.0.0.1', '10.0.0.1'] })
    await expect(safeFetch(`http://mixed.test:${port}/`, { ports: [port] })).rejects.toThrow(/non-public/)
    expect(requests).toEqual([])
  })

  test('SF-03 a name without numbers is unreachable', async () => {
    expect(await codeOf(network().safeFetch('http://none.test/'))).toBe('unreachable')
  })

  test.each([22, 25, 8080, 6379])('W-88 port %i is refused unless the operator allows it', async (port) => {
    const { safeFetch, asked } = network()
    expect(await codeOf(safeFetch(`http://a.test:${port}/`))).toBe('unsafe_url')
    expect(asked).toEqual([])
    expect(await codeOf(safeFetch(`http://a.test:${port}/`, { ports: [port] }))).toBe('unreachable')
  })

  test('SF-13 W-88 the machine’s own address and the operator’s ranges are refused', async () => {
    const names = { 'own.test': ['93.184.216.34'], 'edge.test': ['151.101.1.1'] }
    const { assertPublicUrl } = network(names, { ownAddresses: () => ['93.184.216.34'] })
    expect(await codeOf(assertPublicUrl('https://own.test/'))).toBe('unsafe_url')
    expect(await codeOf(assertPublicUrl('https://edge.test/'))).toBe('none')
    expect(await codeOf(assertPublicUrl('https://edge.test/', { deny: ['151.101.0.0/16'] }))).toBe(
      'unsafe_url',
    )
    expect(await codeOf(assertPublicUrl('https://edge.test/', { deny: ['151.101.1.1'] }))).toBe('unsafe_url')
  })
})

describe('an answer', () => {
  test('SF-07 the name is looked up once, the connection goes to its number, and Host is the name', async () => {
    const { port, requests } = await site((_request, response) => {
      response.statusMessage = 'Quite fine'
      response.setHeader('x-a', '1')
      response.end('hello')
    })
    const { safeFetch, asked } = network({ 'a.test': ['127.0.0.1'] })
    const response = await safeFetch(`http://a.test:${port}/p?q=1#part`, {
      ports: [port],
      headers: { 'X-Mine': 'yes' },
    })
    expect([
      response.status,
      response.statusText,
      response.headers.get('x-a'),
      await response.text(),
    ]).toEqual([200, 'Quite fine', '1', 'hello'])
    expect(asked).toEqual(['a.test'])
    expect(requests[0]?.url).toBe('/p?q=1')
    expect(requests[0]?.headers).toMatchObject({
      host: `a.test:${port}`,
      'x-mine': 'yes',
      'accept-encoding': 'identity',
    })
  })

  test.each([204, 304, 404, 500])('the status %i is passed on', async (status) => {
    const { port, origin } = await site((_request, response) => response.writeHead(status).end())
    expect((await network().safeFetch(`${origin}/`, { ports: [port] })).status).toBe(status)
  })

  const text = 'body '.repeat(1_000)
  test.each<[string, Buffer]>([
    ['gzip', gzipSync(text)],
    ['x-gzip', gzipSync(text)],
    ['br', brotliCompressSync(text)],
    ['deflate', deflateSync(text)],
    ['Deflate', deflateRawSync(text)],
    ['gzip, br', brotliCompressSync(gzipSync(text))],
  ])('SF-11 W-89 %s is undone, and its headers go', async (coding, body) => {
    const { port, origin } = await site((_request, response) => {
      response.writeHead(200, { 'content-encoding': coding, 'content-length': body.length }).end(body)
    })
    const response = await network().safeFetch(`${origin}/`, { ports: [port] })
    expect(await response.text()).toBe(text)
    expect([response.headers.get('content-encoding'), response.headers.get('content-length')]).toEqual([
      null,
      null,
    ])
  })

  test.each(['zstd', 'compress', 'gzip, gzip, gzip', 'nonsense'])('SF-11 %s is refused', async (coding) => {
    const { port, origin } = await site((_request, response) =>
      response.writeHead(200, { 'content-encoding': coding }).end('x'),
    )
    expect(await codeOf(network().safeFetch(`${origin}/`, { ports: [port] }))).toBe('encoding')
  })

  test('SF-11 a body that is broken in its coding is an error', async () => {
    const cut = gzipSync(text).subarray(0, -9)
    const { port, origin } = await site((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(cut),
    )
    expect(await codeOf(network().safeFetch(`${origin}/`, { ports: [port] }))).toBe('encoding')
  })

  test('SF-11 a body that grows beyond the limit when decoded is refused', async () => {
    const bomb = gzipSync(Buffer.alloc(2_000_000))
    expect(bomb.length).toBeLessThan(10_000)
    const { port, origin } = await site((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    )
    expect(await codeOf(network().safeFetch(`${origin}/`, { ports: [port], maxBytes: 100_000 }))).toBe(
      'too_large',
    )
  })

  test('SF-12 a declared length over the limit is refused with status and headers, one that is not declared too', async () => {
    const { port, origin } = await site((request, response) => {
      if (request.url === '/declared') response.writeHead(206, { 'content-length': 11, 'x-a': '1' })
      response.end('hello world')
    })
    const limits = { ports: [port], maxBytes: 10 }
    await expect(network().safeFetch(`${origin}/declared`, limits)).rejects.toMatchObject({
      code: 'too_large',
      status: 206,
    })
    expect(await codeOf(network().safeFetch(`${origin}/chunked`, limits))).toBe('too_large')
    expect(await codeOf(network().safeFetch(`${origin}/declared`, { ...limits, maxBytes: 11 }))).toBe('none')
  })
})

describe('a redirect', () => {
  /** Two origins: `a.test` redirects, `b.test` is another one. */
  async function two(
    answer: (port: number, request: IncomingMessage) => { status?: number; location?: string },
  ) {
    const own = await site((request, response) => {
      const { status = 200, location } = answer(own.port, request)
      response.writeHead(status, location === undefined ? {} : { location }).end('body')
    })
    const names = {
      'a.test': ['127.0.0.1'],
      'b.test': ['127.0.0.2', '127.0.0.1'],
      'inner.test': ['10.0.0.5'],
    }
    const { safeFetch, asked } = network(names)
    const get = (path: string, options: SafeFetchOptions = {}) =>
      safeFetch(`http://a.test:${own.port}${path}`, { ports: [own.port], ...options })
    return { ...own, get, asked }
  }

  test.each([301, 302, 303, 307, 308])(
    'SF-09 %i is followed, and its name looked up anew',
    async (status) => {
      const { get, asked, requests } = await two((_port, { url }) =>
        url === '/start' ? { status, location: '/end' } : {},
      )
      expect((await get('/start')).status).toBe(200)
      expect(asked).toEqual(['a.test', 'a.test'])
      expect(requests.map(({ url }) => url)).toEqual(['/start', '/end'])
    },
  )

  test.each([
    'http://169.254.169.254/latest/',
    'http://inner.test/',
    'file:///etc/passwd',
    'http://user:x@a.test/',
    'http://[::1]/',
    'http://a.test:22/',
  ])('SF-09 one to %s is refused', async (location) => {
    const { get, requests } = await two(() => ({ status: 302, location }))
    expect(await codeOf(get('/'))).toBe('unsafe_url')
    expect(requests).toHaveLength(1)
  })

  test('SF-09 one without a target, and one too many, are errors', async () => {
    const without = await two(() => ({ status: 302 }))
    expect(await codeOf(without.get('/'))).toBe('redirects')
    const round = await two(() => ({ status: 302, location: '/' }))
    expect(await codeOf(round.get('/', { maxRedirects: 2 }))).toBe('redirects')
    expect(round.requests).toHaveLength(3)
  })

  test('SF-10 it is returned when that is asked for', async () => {
    const { get, requests } = await two(() => ({ status: 302, location: 'http://10.0.0.1/' }))
    const response = await get('/', { followRedirects: false })
    expect([response.status, response.headers.get('location'), requests.length]).toEqual([
      302,
      'http://10.0.0.1/',
      1,
    ])
  })

  test('W-87 headers of the caller stay with their origin, and do not come back with it', async () => {
    const { get, requests } = await two((port, { url, headers }) => {
      if (url === '/same') return { status: 302, location: '/there' }
      if (url === '/there') return { status: 302, location: `http://b.test:${port}/over` }
      return headers.host?.startsWith('b.test') ? { status: 302, location: `http://a.test:${port}/back` } : {}
    })
    const headers = { authorization: 'Bearer x', cookie: 'a=b', 'x-mine': '1', accept: 'text/html' }
    expect((await get('/same', { headers })).status).toBe(200)
    const sent = requests.map((request) => [
      request.url,
      request.headers.authorization,
      request.headers.cookie,
      request.headers['x-mine'],
      request.headers.accept,
    ])
    expect(sent).toEqual([
      ['/same', 'Bearer x', 'a=b', '1', 'text/html'],
      ['/there', 'Bearer x', 'a=b', '1', 'text/html'],
      ['/over', undefined, undefined, undefined, 'text/html'],
      ['/back', undefined, undefined, undefined, 'text/html'],
    ])
  })
})

describe('connections', () => {
  test('SF-08 a number that refuses the connection is passed over for the next', async () => {
    const { port } = await site((_request, response) => response.end('second'))
    const { safeFetch } = network({ 'two.test': ['127.0.0.2', '127.0.0.1'] })
    expect(await (await safeFetch(`http://two.test:${port}/`, { ports: [port] })).text()).toBe('second')
  })

  test('SF-08 a connection that breaks after the request is not tried again elsewhere', async () => {
    let connections = 0
    const port = await listening(
      createTcpServer((socket) => {
        connections += 1
        socket.once('data', () => socket.destroy())
      }),
    )
    const { safeFetch } = network({ 'two.test': ['127.0.0.1', '127.0.0.1'] })
    expect(await codeOf(safeFetch(`http://two.test:${port}/`, { ports: [port] }))).toBe('unreachable')
    expect(connections).toBe(1)
  })

  test('SF-02 a body that never ends is out of time, and its connection is closed', async () => {
    const closed = Promise.withResolvers<void>()
    const { port, origin } = await site((request, response) => {
      response.write('x')
      request.socket.once('close', () => closed.resolve())
    })
    expect(await codeOf(network().safeFetch(`${origin}/`, { ports: [port], timeoutMs: 100 }))).toBe('timeout')
    await closed.promise
  })

  test('a caller’s signal ends it with its own reason, before, while looking up and while reading', async () => {
    const { port, origin } = await site((_request, response) => response.write('x'))
    const reason = new TypeError('enough')
    const before = network().safeFetch(`${origin}/`, { ports: [port], signal: AbortSignal.abort(reason) })
    await expect(before).rejects.toBe(reason)
    const controller = new AbortController()
    const slow = network(
      {},
      {
        resolve: (_host, signal) =>
          new Promise((_done, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
      },
    )
    const lookingUp = slow.safeFetch('http://slow.test/', { signal: controller.signal })
    const reading = network().safeFetch(`${origin}/`, { ports: [port], signal: controller.signal })
    controller.abort(reason)
    await expect(lookingUp).rejects.toBe(reason)
    await expect(reading).rejects.toBe(reason)
  })

  test('SF-07 with https the certificate has to be that of the name, whatever number it leads to', async () => {
    const { key, ca } = certificateOf('good.test')
    const names: (string | undefined | false)[] = []
    const server = createTlsServer({ key, cert: ca }, (request, response) => {
      names.push((request.socket as unknown as { servername?: string }).servername)
      response.end('tls')
    })
    const port = await listening(server as unknown as Server)
    const { safeFetch } = network({ 'good.test': ['127.0.0.1'], 'bad.test': ['127.0.0.1'] }, { ca })
    expect(await (await safeFetch(`https://good.test:${port}/`, { ports: [port] })).text()).toBe('tls')
    expect(await codeOf(safeFetch(`https://bad.test:${port}/`, { ports: [port] }))).toBe('unreachable')
    expect(names).toEqual(['good.test'])
    const down = network({ 'good.test': ['127.0.0.1'] }, { ca })
    expect(await codeOf(down.safeFetch(`https://good.test:${port}/`, { ports: [port] }))).toBe('none')
  })

  test('W-87 a redirect from https to http is refused unless it is allowed', async () => {
    const { key, ca } = certificateOf('s.test')
    const plain = await site((_request, response) => response.end('plain'))
    const secure = createTlsServer({ key, cert: ca }, (_request, response) =>
      response.writeHead(302, { location: `http://p.test:${plain.port}/` }).end(),
    )
    const port = await listening(secure as unknown as Server)
    const { safeFetch } = network({ 's.test': ['127.0.0.1'], 'p.test': ['127.0.0.1'] }, { ca })
    const ports = [port, plain.port]
    expect(await codeOf(safeFetch(`https://s.test:${port}/`, { ports }))).toBe('unsafe_url')
    expect(plain.requests).toEqual([])
    expect(await (await safeFetch(`https://s.test:${port}/`, { ports, allowDowngrade: true })).text()).toBe(
      'plain',
    )
  })

  test.each(['HTTP_PROXY', 'http_proxy', 'ALL_PROXY'])(
    'SF-07 %s of the environment is not used',
    async (name) => {
      const { port, origin } = await site((_request, response) => response.end('direct'))
      process.env[name] = 'http://127.0.0.1:9'
      onTestFinished(() => void delete process.env[name])
      expect(await (await network().safeFetch(`${origin}/`, { ports: [port] })).text()).toBe('direct')
    },
  )
})

describe('options', () => {
  test.each<[string, SafeFetchOptions]>([
    ['maxBytes', { maxBytes: 0 }],
    ['maxBytes', { maxBytes: 32 * 2 ** 20 + 1 }],
    ['maxBytes', { maxBytes: 1.5 }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['timeoutMs', { timeoutMs: 120_001 }],
    ['maxRedirects', { maxRedirects: -1 }],
    ['maxRedirects', { maxRedirects: 11 }],
    ['ports', { ports: [0] }],
    ['deny', { deny: ['example.com'] }],
    ['deny', { deny: ['10.0.0.0/33'] }],
    ['deny', { deny: ['10/8'] }],
    ['deny', { deny: ['0x7f.1/8'] }],
    ['deny', { deny: ['::ffff:10.0.0.0/8'] }],
    ['deny', { deny: ['fe80::1%eth0'] }],
    ['deny', { deny: ['10.0.0.0/8/8'] }],
    ['deny', { deny: ['10.0.0.0/'] }],
    ['headers', { headers: { host: 'x' } }],
    ['headers', { headers: { 'Content-Length': '5' } }],
    ['headers', { headers: { 'accept-encoding': 'gzip' } }],
    ['headers', { headers: { 'x\n': '1' } }],
    ['headers', { headers: { x: 'a\r\nb: c' } }],
    ['headers', { headers: new Headers({ x: '1' }) as unknown as Record<string, string> }],
  ])('SF-02 %s is checked: %j', async (option, options) => {
    const { safeFetch, asked } = network()
    await expect(safeFetch('http://a.test/', options)).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining(option),
    })
    expect(asked).toEqual([])
  })
})

test('W-89 a signal that fired before asks no resolver, and one that fires later does not wait for it', async () => {
  const reason = new TypeError('called off')
  const { asked, safeFetch: fetched, assertPublicUrl: checked } = network({ 'a.test': ['127.0.0.1'] })
  for (const ask of [fetched, checked]) {
    await expect(ask('http://a.test/', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  }
  expect(asked).toEqual([])
  const controller = new AbortController()
  const deaf = network({}, { resolve: () => new Promise(() => {}) })
  const waiting = deaf.safeFetch('http://a.test/', { signal: controller.signal })
  controller.abort(reason)
  await expect(waiting).rejects.toBe(reason)
  expect(await codeOf(deaf.safeFetch('http://a.test/', { timeoutMs: 1 }))).toBe('timeout')
})
