/** What the bytes so far amount to. `broken` is no answer that HTTP/1.1 knows. */
export type AnswerState = 'more' | 'done' | 'broken' | 'too_large'

const MAX_HEAD_BYTES = 16 * 1024
const MAX_LINE_BYTES = 1024
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/
const STATUS_LINE = /^HTTP\/1\.1 ([1-5]\d\d)(?: [^\r\n]*)?$/
const LENGTH = /^\d{1,15}$/
const CHUNK_SIZE = /^([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?$/
const NOTHING = Buffer.alloc(0)

/**
 * Reads one answer of HTTP/1.1 from the bytes of a connection, a counted body or a chunked one (RFC 9112). Strict: what
 * two readers could take for different answers is broken.
 */
export class HttpAnswer {
  status = 0
  /** The connection may carry another request after this answer. */
  reusable = false
  readonly #maxBytes: number
  readonly #chunks: Buffer[] = []
  #bytes = 0
  /** Bytes of a head or a line that is not complete. */
  #pending: Buffer = NOTHING
  /** Where in the answer: a body has what is left of it, a chunked one of its chunk. */
  #at: 'head' | 'counted' | 'size' | 'chunk' | 'after-chunk' | 'trailer' = 'head'
  #left = 0
  #closes = false

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The body's text, once `push` said `done`. */
  text(): string {
    const [first = NOTHING] = this.#chunks
    return (this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : first).toString('utf8')
  }

  /** Takes what arrived next. Anything but `more` is final. */
  push(chunk: Buffer): AnswerState {
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    this.#pending = NOTHING
    for (;;) {
      if (this.#at === 'counted' || this.#at === 'chunk') {
        const part = rest.subarray(0, this.#left)
        rest = rest.subarray(part.length)
        this.#left -= part.length
        this.#bytes += part.length
        if (this.#bytes > this.#maxBytes) return 'too_large'
        if (part.length > 0) this.#chunks.push(part)
        if (this.#left > 0) return 'more'
        if (this.#at === 'counted') return this.#finish(rest)
        this.#at = 'after-chunk'
      }
      const mark = this.#at === 'head' ? '\r\n\r\n' : '\r\n'
      const end = rest.indexOf(mark)
      if (end === -1) {
        this.#pending = rest
        return rest.length > (this.#at === 'head' ? MAX_HEAD_BYTES : MAX_LINE_BYTES) ? 'broken' : 'more'
      }
      const text = rest.toString('latin1', 0, end)
      rest = rest.subarray(end + mark.length)
      const state = this.#at === 'head' ? this.#readHead(text) : this.#readLine(text)
      if (state === 'done') return this.#finish(rest)
      if (state !== 'more') return state
    }
  }

  #readHead(text: string): AnswerState {
    const [first = '', ...lines] = text.split('\r\n')
    const status = Number(STATUS_LINE.exec(first)?.[1])
    if (!(status >= 100) || status === 101) return 'broken'
    const headers = new Map<string, string>()
    for (const line of lines) {
      const [, name = '', value = ''] = HEADER_LINE.exec(line) ?? []
      const key = name.toLowerCase()
      const framing = key === 'content-length' || key === 'transfer-encoding'
      if (key === '' || (framing && headers.has(key))) return 'broken'
      headers.set(key, value)
    }
    // An interim answer: the real one follows.
    if (status < 200) return 'more'
    this.status = status
    this.#closes = /(^|[\s,])close([\s,]|$)/i.test(headers.get('connection') ?? '')
    return this.#frame(headers.get('transfer-encoding'), headers.get('content-length'))
  }

  #frame(coding: string | undefined, length: string | undefined): AnswerState {
    if (this.status === 204 || this.status === 304) return 'done'
    if (coding !== undefined) {
      this.#at = 'size'
      return coding.toLowerCase() === 'chunked' && length === undefined ? 'more' : 'broken'
    }
    if (length === undefined || !LENGTH.test(length)) return 'broken'
    this.#left = Number(length)
    this.#at = 'counted'
    return this.#left > this.#maxBytes ? 'too_large' : 'more'
  }

  #readLine(text: string): AnswerState {
    if (this.#at === 'after-chunk') {
      this.#at = 'size'
      return text === '' ? 'more' : 'broken'
    }
    if (this.#at === 'trailer') return text === '' ? 'done' : 'more'
    const size = CHUNK_SIZE.exec(text)?.[1]
    if (size === undefined) return 'broken'
    this.#left = Number.parseInt(size, 16)
    this.#at = this.#left === 0 ? 'trailer' : 'chunk'
    return this.#bytes + this.#left > this.#maxBytes ? 'too_large' : 'more'
  }

  /** Bytes behind the answer belong to nothing that was asked for. */
  #finish(rest: Buffer): AnswerState {
    this.reusable = !this.#closes && rest.length === 0
    return 'done'
  }
}
