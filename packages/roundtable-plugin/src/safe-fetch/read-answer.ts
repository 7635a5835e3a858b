import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'
import { ResponseTooLargeError, SafeFetchError } from './errors.ts'

/** The head of an answer. */
export interface AnswerHead {
  readonly status: number
  readonly headers: Headers
}

/** More codings than this, one upon the other, are a trick. */
const MOST_CODINGS = 2

/** Room for an answer to begin with. */
const LEAST_BYTES = 64 * 1024

/**
 * Reads an answer to its end and undoes its content codings: gzip, deflate with or without its zlib frame, br, and two
 * of them in a row. Bounded before and after decoding.
 * @throws ResponseTooLargeError, SafeFetchError `encoding`
 */
export async function readAnswer(
  body: AsyncIterable<unknown>,
  head: AnswerHead,
  maxBytes: number,
): Promise<Buffer> {
  const codings = codingsOf(head.headers)
  const declared = Number(head.headers.get('content-length') ?? 0)
  if (declared > maxBytes) throw new ResponseTooLargeError(maxBytes, head)
  let bytes = await gather(body, head, maxBytes)
  for (const coding of codings.reverse()) bytes = await decode(bytes, coding, head, maxBytes)
  return bytes
}

/** The codings in the order in which they were applied. Throws {@link SafeFetchError} `encoding` for one that is not read. */
function codingsOf(headers: Headers): string[] {
  const codings = (headers.get('content-encoding') ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity')
  const known = codings.every((coding) => ['gzip', 'x-gzip', 'deflate', 'br'].includes(coding))
  if (!known || codings.length > MOST_CODINGS) {
    throw new SafeFetchError('encoding', 'The answer has a content encoding that is not read.')
  }
  return codings
}

async function decode(bytes: Buffer, coding: string, head: AnswerHead, maxBytes: number): Promise<Buffer> {
  if (bytes.length === 0) return bytes
  const decoder = decoderFor(coding, bytes)
  try {
    decoder.end(bytes)
    return await gather(decoder, head, maxBytes)
  } catch (cause) {
    if (SafeFetchError.isInstance(cause)) throw cause
    throw new SafeFetchError('encoding', 'The answer is broken in its content encoding.', { cause })
  }
}

/** `deflate` means zlib's frame (RFC 1950), and some services leave it out: the first byte tells. */
function decoderFor(coding: string, bytes: Buffer) {
  if (coding === 'br') return createBrotliDecompress()
  if (coding !== 'deflate') return createGunzip()
  return ((bytes[0] ?? 0) & 0x0f) === 8 ? createInflate() : createInflateRaw()
}

/** Pieces are copied as they come: a stranger may send one byte at a time, and a kept piece costs a hundred. */
async function gather(source: AsyncIterable<unknown>, head: AnswerHead, maxBytes: number): Promise<Buffer> {
  let held = Buffer.alloc(0)
  let size = 0
  for await (const chunk of source) {
    const bytes = chunk as Buffer
    const needed = size + bytes.length
    if (needed > maxBytes) throw new ResponseTooLargeError(maxBytes, head)
    if (needed > held.length) {
      const larger = Buffer.allocUnsafe(Math.min(maxBytes, Math.max(needed, 2 * held.length, LEAST_BYTES)))
      larger.set(held.subarray(0, size))
      held = larger
    }
    held.set(bytes, size)
    size = needed
  }
  return held.subarray(0, size)
}
