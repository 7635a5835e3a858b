import { pipeline, Readable } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import { CallRefusal } from '../call/refusal.ts'

/** More than one is unusual, more than this a trick. */
const MOST_CODINGS = 2

const SYNC = { flush: constants.Z_SYNC_FLUSH }

/**
 * Undoes `content-encoding` (RFC 9110 section 8.4): gzip, deflate with and without its zlib frame, br, zstd, and
 * two of them in a row. What is decoded comes out as soon as it came in; sizes are for the reader to bound. A
 * compressed body that breaks off is an error, and destroying the result destroys the body.
 * @throws CallRefusal `upstream_invalid` for any other coding.
 */
export function decodeBody(body: Readable, contentEncoding: string | undefined): Readable {
  if (contentEncoding === undefined) return body
  const codings = contentEncoding
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity')
  if (codings.length > MOST_CODINGS) throw new CallRefusal('upstream_invalid', { retry: false })
  return codings.reduceRight(decoded, body)
}

function decoded(body: Readable, coding: string): Readable {
  // Errors reach the reader through the decoder; the callback only keeps them from being thrown as well.
  if (coding === 'deflate') return pipeline(body, inflate, () => {}) as unknown as Readable
  return pipeline(body, decoderFor(coding), () => {})
}

function decoderFor(coding: string) {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip(SYNC)
    case 'br':
      return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })
    case 'zstd':
      return createZstdDecompress({ flush: constants.ZSTD_e_flush })
    default:
      throw new CallRefusal('upstream_invalid', { retry: false })
  }
}

/** `deflate` means zlib's frame (RFC 1950), and some services leave it out: the first byte tells. */
async function* inflate(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = source[Symbol.asyncIterator]()
  const first = await reader.next()
  if (first.done === true) return
  const framed = ((first.value[0] ?? 0) & 0x0f) === 8
  const all = (async function* () {
    yield first.value
    yield* { [Symbol.asyncIterator]: () => reader }
  })()
  yield* pipeline(Readable.from(all), framed ? createInflate(SYNC) : createInflateRaw(SYNC), () => {})
}
