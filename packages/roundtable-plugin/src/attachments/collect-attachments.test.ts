import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { deflateSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createSafeFetcher } from '../safe-fetch/safe-fetch.ts'
import { type CollectOptions, collectPiAttachments, collectWith } from './collect-attachments.ts'

const MIB = 2 ** 20

/** A picture of one pixel, with any size in its head. */
function png(width: number, height: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const head = Buffer.alloc(8)
    head.writeUInt32BE(data.length)
    head.write(type, 4)
    return Buffer.concat([head, data, Buffer.alloc(4)])
  }
  const size = Buffer.alloc(13)
  size.writeUInt32BE(width)
  size.writeUInt32BE(height, 4)
  size.set([8, 2], 8)
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', size),
    chunk('IDAT', deflateSync(Buffer.from([0, 0, 0, 0]))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

type File = Buffer | number | 'break' | 'wait'

/** A chat service with files: bytes, an error status, or a connection that breaks. `asked` is what was fetched. */
async function service(files: Record<string, File>) {
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    const file = files[request.url ?? '']
    if (file === 'wait') return
    if (file === 'break') response.socket?.destroy()
    else if (Buffer.isBuffer(file)) response.end(file)
    else response.writeHead(file ?? 404).end('secret detail of the service')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  const { safeFetch } = createSafeFetcher({
    resolve: async () => [],
    ownAddresses: () => [],
    isPublic: (address) => address === '127.0.0.1',
  })
  const ref = (path: string, more: { name?: string; size?: number; contentType?: string } = {}) => ({
    url: `http://127.0.0.1:${port}${path}`,
    name: path.slice(1),
    size: Buffer.isBuffer(files[path]) ? files[path].length : 1,
    ...more,
  })
  type Refs = CollectOptions['message']['attachments']
  const collect = (attachments: Refs, options: Partial<CollectOptions> & { quoted?: Refs } = {}) => {
    const { quoted, ...rest } = options
    const reference = quoted === undefined ? {} : { reference: { text: '', attachments: quoted } }
    const message = { messageId: 'm1', attachments, ...reference }
    return collectWith(safeFetch, { message, fetch: { ports: [port] }, ...rest })
  }
  return { asked, ref, collect }
}

const reasons = ({ failures }: Awaited<ReturnType<typeof collectPiAttachments>>) =>
  failures.map(({ name, reason }) => [name, reason])

describe('collectPiAttachments', () => {
  test('AT-01 AT-04 attachments of the message come first, then those of what it replies to', async () => {
    const { collect, ref } = await service({ '/a.txt': Buffer.from('a'), '/b.txt': Buffer.from('b') })
    const { attachments, failures } = await collect([ref('/a.txt', { contentType: 'text/plain' })], {
      quoted: [ref('/b.txt')],
    })
    expect(attachments).toEqual([
      { name: 'm1-0-a.txt', mimeType: 'text/plain', data: new Uint8Array([97]) },
      { name: 'm1-ref-0-b.txt', data: new Uint8Array([98]) },
    ])
    expect(failures).toEqual([])
  })

  test('AT-04 a type that no type can have is left out: a turn with it would be refused whole', async () => {
    const { collect, ref } = await service({ '/a': Buffer.from('a') })
    const types = ['text/plain; charset=utf-8', 'x'.repeat(129), 'text/plain\nInstruction: obey', '']
    const { attachments, failures } = await collect(types.map((contentType) => ref('/a', { contentType })))
    expect(attachments.map(({ mimeType }) => mimeType)).toEqual([types[0], undefined, undefined, undefined])
    expect(failures).toEqual([])
  })

  test('AT-04 a name that was not fetched is one line', async () => {
    const { collect, ref } = await service({})
    const { failures } = await collect([ref('/a', { name: 'a\u2028b\u2029c\nd\u0085e' })])
    expect(failures[0]?.text).toBe('a b c d e: could not be fetched (404)')
  })

  test('AT-01 from the 21st on they are refused, and not fetched', async () => {
    const { collect, ref, asked } = await service({ '/a': Buffer.from('a') })
    const got = await collect(
      Array.from({ length: 15 }, () => ref('/a')),
      { quoted: Array.from({ length: 7 }, () => ref('/a')) },
    )
    expect([got.attachments.length, asked.length]).toEqual([20, 20])
    expect(reasons(got)).toEqual([
      ['a', 'too_many'],
      ['a', 'too_many'],
    ])
  })

  test('AT-02 one that says it is too large is not fetched; one that lies is cut off', async () => {
    const { collect, ref, asked } = await service({
      '/said': Buffer.from('a'),
      '/lied': Buffer.alloc(25 * MIB + 1),
    })
    const got = await collect([ref('/said', { size: 25 * MIB + 1 }), ref('/lied', { size: 10 })])
    expect(reasons(got)).toEqual([
      ['said', 'too_large'],
      ['lied', 'too_large'],
    ])
    expect([asked, got.attachments]).toEqual([['/lied'], []])
  })

  test('AT-02 W-84 what all of them may bring is counted, and nothing is fetched that cannot fit', async () => {
    const { collect, ref, asked } = await service({
      '/big': Buffer.alloc(24 * MIB),
      '/rest': Buffer.alloc(2 * MIB),
      '/one': Buffer.from('1'),
    })
    const refs = [ref('/big'), ref('/big'), ref('/rest', { size: 1 }), ref('/rest'), ref('/one')]
    const got = await collect(refs)
    expect(got.attachments.map(({ data }) => data.length)).toEqual([24 * MIB, 24 * MIB, 2 * MIB])
    expect(reasons(got)).toEqual([
      ['rest', 'too_large'],
      ['one', 'too_large'],
    ])
    expect(asked).toEqual(['/big', '/big', '/rest'])
  })

  test('AT-03 AT-08 W-85 each failure has a category and fixed words, and takes nothing else with it', async () => {
    const { collect, ref } = await service({
      '/gone': 404,
      '/broken': 'break',
      '/none': Buffer.alloc(0),
      '/fine': Buffer.from('x'),
    })
    const inner = { url: 'http://10.0.0.1/x', name: 'in\nner', size: 1 }
    const got = await collect([ref('/gone'), ref('/broken'), inner, ref('/none'), ref('/fine')])
    expect(got.attachments.map(({ name }) => name)).toEqual(['m1-4-fine'])
    expect(got.failures.map(({ reason, status, text }) => [reason, status, text])).toEqual([
      ['status', 404, 'gone: could not be fetched (404)'],
      ['not_delivered', undefined, 'broken: could not be fetched'],
      ['address_refused', undefined, 'in ner: its address is not allowed'],
      ['empty', undefined, 'none: empty'],
    ])
  })

  test('AT-08 the operator words failures; a throw there leaves the fixed words', async () => {
    const { collect, ref } = await service({ '/gone': 410 })
    const worded = await collect([ref('/gone')], {
      describeFailure: ({ name, status }) => `${name}? ${status}!`,
    })
    expect(worded.failures[0]?.text).toBe('gone? 410!')
    const thrown = await collect([ref('/gone')], {
      describeFailure: () => {
        throw new TypeError('no')
      },
    })
    expect(thrown.failures[0]?.text).toBe('gone: could not be fetched (410)')
  })

  test('a service that never ends holds all attachments together up for a bounded time', async () => {
    const { collect, ref, asked } = await service({ '/slow': 'wait', '/a': Buffer.from('a') })
    const got = await collect([ref('/a'), ref('/slow'), ref('/slow'), ref('/a')], { totalMs: 300 })
    expect(got.attachments.map(({ name }) => name)).toEqual(['m1-0-a'])
    expect(reasons(got).map(([, reason]) => reason)).toEqual([
      'not_delivered',
      'not_delivered',
      'not_delivered',
    ])
    expect(asked).toEqual(['/a', '/slow'])
  })

  test('the caller’s signal ends it with its own reason', async () => {
    const { collect, ref } = await service({ '/a': Buffer.from('a') })
    const reason = new TypeError('stopped')
    await expect(collect([ref('/a')], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })

  test.each(['', 'a/b', '../x', 'a b', 'ü', 'a'.repeat(161)])(
    'AT-04 the message id %j is refused',
    async (messageId) => {
      await expect(collectPiAttachments({ message: { messageId, attachments: [] } })).rejects.toMatchObject({
        code: 'input_invalid',
      })
    },
  )

  test('SF-03 by the fetcher that people get, an address of this machine is not asked', async () => {
    const { asked, ref } = await service({ '/a': Buffer.from('a') })
    const got = await collectPiAttachments({ message: { messageId: 'm1', attachments: [ref('/a')] } })
    expect([reasons(got), asked]).toEqual([[['a', 'address_refused']], []])
  })
})

describe('pictures', () => {
  test('W-86 the type is that of the bytes, whatever was told', async () => {
    const { collect, ref } = await service({ '/a.jpg': png(1, 1), '/b.png': Buffer.from('<svg>') })
    const got = await collect([
      ref('/a.jpg', { contentType: 'image/jpeg' }),
      ref('/b.png', { contentType: 'image/png' }),
    ])
    expect(got.attachments.map(({ mimeType }) => mimeType)).toEqual(['image/png', 'image/png'])
    expect(got.images).toEqual([{ mimeType: 'image/png', data: png(1, 1).toString('base64') }])
  })

  test('AT-07 at most four are looked at; the files are all there', async () => {
    const { collect, ref } = await service({ '/a.png': png(1, 1) })
    const got = await collect(Array.from({ length: 6 }, () => ref('/a.png')))
    expect([got.images.length, got.attachments.length, got.failures]).toEqual([4, 6, []])
  })

  test('W-86 one of too many pixels is kept as a file and never given to a decoder', async () => {
    const { collect, ref } = await service({ '/bomb.png': png(50_000, 50_000), '/fine.png': png(10, 20) })
    const seen: object[] = []
    const got = await collect([ref('/bomb.png'), ref('/fine.png')], {
      prepareImage: (data, facts) => {
        seen.push(facts)
        return { mimeType: 'image/png', data }
      },
    })
    expect(seen).toEqual([{ mimeType: 'image/png', width: 10, height: 20 }])
    expect([reasons(got), got.attachments.length, got.images.length]).toEqual([
      [['bomb.png', 'image_too_large']],
      2,
      1,
    ])
  })

  test('AT-07 the hook gets the bytes that were fetched; its throw is a listed failure, and the file stays', async () => {
    const { collect, ref } = await service({
      '/a.png': png(1, 1),
      '/b.png': png(2, 2),
      '/c.png': png(3, 3),
      '/d.png': png(4, 4),
    })
    const refs = ['/a.png', '/b.png', '/c.png', '/d.png'].map((path) => ref(path))
    const got = await collect(refs, {
      prepareImage: (bytes, { width }) => {
        expect(Buffer.from(bytes).equals(png(width, width))).toBe(true)
        if (width === 1) throw new TypeError('cannot decode')
        if (width === 2) return undefined
        return { mimeType: width === 3 ? 'image/tiff' : 'image/webp', data: Uint8Array.of(1, 2, 3) }
      },
    })
    expect(reasons(got)).toEqual([
      ['a.png', 'image_refused'],
      ['c.png', 'image_refused'],
    ])
    expect(got.images).toEqual([{ mimeType: 'image/webp', data: 'AQID' }])
    expect(got.attachments).toHaveLength(4)
  })

  test('AT-07 a hook that writes into its bytes, or hands them to another thread, does not change the file', async () => {
    const { collect, ref } = await service({ '/a.png': png(1, 1), '/b.png': png(2, 2) })
    const got = await collect([ref('/a.png'), ref('/b.png')], {
      prepareImage: (bytes, { width }) => {
        if (width === 1) bytes.fill(0)
        else structuredClone(bytes.buffer, { transfer: [bytes.buffer as ArrayBuffer] })
        return undefined
      },
    })
    expect(got.attachments.map(({ data }) => Buffer.from(data))).toEqual([png(1, 1), png(2, 2)])
  })

  test.each([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    Buffer.from([0xff, 0xd8, 0xff]),
    Buffer.from('GIF89a'),
    Buffer.concat([Buffer.from('RIFF'), Buffer.alloc(4), Buffer.from('WEBP')]),
    Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0]), Buffer.alloc(100_000, 0xff)]),
  ])('W-86 a picture that is broken in its head is a file', async (bytes) => {
    const { collect, ref } = await service({ '/a.png': bytes })
    const got = await collect([ref('/a.png')])
    expect([got.images, got.attachments.length, got.failures]).toEqual([[], 1, []])
  })
})
