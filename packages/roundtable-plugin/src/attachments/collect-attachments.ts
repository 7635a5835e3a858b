import type { PiImage } from '@sandbox/protocol'
import { IMAGE_TYPES, limits } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { AttachmentRef, HostLogger, InboundMessage } from '../host-contract.ts'
import {
  ResponseTooLargeError,
  SafeFetchError,
  type SafeFetchOptions,
  safeFetch,
  UnsafeUrlError,
} from '../safe-fetch/index.ts'
import { type AttachmentFailure, type AttachmentFailureReason, failureText } from './attachment-failure.ts'
import { attachmentName } from './attachment-name.ts'
import { type ImageFacts, imageFacts } from './image-facts.ts'

const MIB = 2 ** 20
/** Attachments of one message, those of what it replies to included. */
const MOST = 20
/** One attachment, and all of a message, in bytes. */
const ONE_BYTES = 25 * MIB
const ALL_BYTES = 50 * MIB
/** One attachment may take this long, in milliseconds. */
const ONE_MS = 60_000
/** And all of a message. */
const ALL_MS = 120_000
/** Pictures that the model looks at. */
const PICTURES = 4
/** A small file can stand for a picture that fills the memory of whoever decodes it. */
const MAX_PIXELS = 40_000_000

/** A picture for the model, ready to be sent. */
export interface PreparedImage {
  readonly mimeType: string
  readonly data: Uint8Array
}

/** What {@link collectPiAttachments} works with. */
export interface CollectOptions {
  readonly message: Pick<InboundMessage, 'messageId' | 'attachments' | 'reference'>
  /** How addresses are judged: ports, refused ranges, time limit. */
  readonly fetch?: Omit<SafeFetchOptions, 'maxBytes' | 'signal' | 'headers'>
  /**
   * Makes a picture fit for the model, from the bytes that were fetched: scaled down, say. Omitted = as it is. Return
   * `undefined` to leave the picture out. A throw is a listed failure; the file stays.
   */
  prepareImage?(
    bytes: Uint8Array,
    facts: ImageFacts,
    signal: AbortSignal | undefined,
  ): PreparedImage | undefined | Promise<PreparedImage | undefined>
  /** Most pixels of a picture that is looked at. Omitted = 40,000,000. */
  readonly maxPixels?: number
  /** How long all of them together may take, in milliseconds; those that are left then are not fetched. Omitted = 120,000. */
  readonly totalMs?: number
  /** Words for a failure, for the chat. Omitted, or a throw = fixed words. */
  describeFailure?(failure: AttachmentFailure): string
  readonly signal?: AbortSignal
  readonly logger?: HostLogger
}

/** What came of the attachments of a message. */
export interface CollectedAttachments {
  /** For `runTurn`: safe names that are the message's own, the type found in the bytes or else, if it can be one, told. */
  readonly attachments: readonly {
    readonly name: string
    readonly mimeType?: string
    readonly data: Uint8Array
  }[]
  /** For `runTurn`: at most 4. */
  readonly images: readonly PiImage[]
  /** In the order of the message. */
  readonly failures: readonly (AttachmentFailure & { readonly text: string })[]
}

/**
 * Fetches the attachments of a message and of the one that it replies to, one after another. What fails is listed and
 * takes nothing else with it. Nothing is written: the runtime does that.
 *
 * @throws SandboxPluginError `input_invalid` for a message id that cannot be part of a name; the reason of `signal`
 */
export function collectPiAttachments(options: CollectOptions): Promise<CollectedAttachments> {
  return collectWith(safeFetch, options)
}

/** The same with another fetcher; tests bring one to which a local server is public. */
export async function collectWith(
  fetcher: typeof safeFetch,
  options: CollectOptions,
): Promise<CollectedAttachments> {
  return await new Collection(fetcher, options).run()
}

class Collection {
  readonly #fetcher: typeof safeFetch
  readonly #options: CollectOptions
  readonly #attachments: { name: string; mimeType?: string; data: Uint8Array }[] = []
  readonly #images: PiImage[] = []
  readonly #failures: (AttachmentFailure & { text: string })[] = []
  readonly #deadline: number
  #left = ALL_BYTES
  #pictureBytes = limits.IMAGES_TOTAL_BYTES

  constructor(fetcher: typeof safeFetch, options: CollectOptions) {
    this.#fetcher = fetcher
    this.#options = options
    this.#deadline = performance.now() + (options.totalMs ?? ALL_MS)
  }

  async run(): Promise<CollectedAttachments> {
    const { messageId, attachments, reference } = this.#options.message
    if (!/^[a-zA-Z0-9_-]{1,160}$/.test(messageId)) {
      throw new SandboxPluginError(
        'input_invalid',
        'messageId must have 1 to 160 characters of A-Z a-z 0-9 _ -',
      )
    }
    const own = attachments.map((ref, index) => ({ ref, index, quoted: false }))
    const quoted = (reference?.attachments ?? []).map((ref, index) => ({ ref, index, quoted: true }))
    for (const [place, { ref, index, quoted: isQuoted }] of [...own, ...quoted].entries()) {
      if (place >= MOST) this.#fail(ref, 'too_many')
      else await this.#take(ref, attachmentName(messageId, { index, name: ref.name, quoted: isQuoted }))
    }
    return { attachments: this.#attachments, images: this.#images, failures: this.#failures }
  }

  async #take(ref: AttachmentRef, name: string): Promise<void> {
    const most = Math.min(ONE_BYTES, this.#left)
    if (most === 0 || ref.size > most) return this.#fail(ref, 'too_large')
    const data = await this.#fetch(ref, most)
    if (data === undefined) return
    if (data.length === 0) return this.#fail(ref, 'empty')
    this.#left -= data.length
    const facts = imageFacts(data)
    const mimeType = facts?.mimeType ?? toldType(ref.contentType)
    this.#attachments.push({ name, ...(mimeType === undefined ? {} : { mimeType }), data })
    if (facts !== undefined && this.#images.length < PICTURES) await this.#show(ref, data, facts)
  }

  async #fetch(ref: AttachmentRef, maxBytes: number): Promise<Uint8Array | undefined> {
    const { signal, fetch = {}, logger } = this.#options
    const left = Math.floor(this.#deadline - performance.now())
    if (left < 1) {
      this.#fail(ref, 'not_delivered')
      return undefined
    }
    try {
      const timeoutMs = Math.min(fetch.timeoutMs ?? ONE_MS, left)
      const response = await this.#fetcher(ref.url, {
        ...fetch,
        timeoutMs,
        maxBytes,
        ...(signal && { signal }),
      })
      if (response.ok) return new Uint8Array(await response.arrayBuffer())
      this.#fail(ref, 'status', response.status)
    } catch (cause) {
      signal?.throwIfAborted()
      if (!SafeFetchError.isInstance(cause)) throw cause
      logger?.warn({ code: cause.code, cause: cause.message }, 'an attachment was not fetched')
      this.#fail(ref, reasonOf(cause))
    }
    return undefined
  }

  /** Pictures are made of the bytes that were fetched; nothing is opened again. The hook gets its own copy of them. */
  async #show(ref: AttachmentRef, bytes: Uint8Array, facts: ImageFacts): Promise<void> {
    const { prepareImage, maxPixels = MAX_PIXELS, signal, logger } = this.#options
    if (facts.width * facts.height > maxPixels) return this.#fail(ref, 'image_too_large')
    try {
      const prepared = prepareImage
        ? await prepareImage.call(this.#options, Uint8Array.from(bytes), facts, signal)
        : { mimeType: facts.mimeType, data: bytes }
      signal?.throwIfAborted()
      if (prepared === undefined) return
      const mimeType = IMAGE_TYPES.find((type) => type === prepared.mimeType)
      const size = prepared.data.length
      if (mimeType === undefined || size === 0) return this.#fail(ref, 'image_refused')
      if (size > limits.IMAGE_BYTES || size > this.#pictureBytes) return this.#fail(ref, 'image_too_large')
      this.#pictureBytes -= size
      this.#images.push({ mimeType, data: Buffer.from(prepared.data).toString('base64') })
    } catch (cause) {
      signal?.throwIfAborted()
      logger?.warn({ cause: String(cause) }, 'a picture was not prepared')
      this.#fail(ref, 'image_refused')
    }
  }

  #fail(ref: AttachmentRef, reason: AttachmentFailureReason, status?: number): void {
    const failure = { name: ref.name, reason, ...(status === undefined ? {} : { status }) }
    this.#failures.push({ ...failure, text: this.#wordsFor(failure) })
  }

  #wordsFor(failure: AttachmentFailure): string {
    try {
      return this.#options.describeFailure?.(failure) ?? failureText(failure)
    } catch {
      return failureText(failure)
    }
  }
}

/** What a chat service passes on of a stranger. A turn with one that no type can have would be refused whole. */
function toldType(contentType: string | undefined): string | undefined {
  return contentType !== undefined && /^[\x20-\x7e]{1,128}$/.test(contentType) ? contentType : undefined
}

function reasonOf(error: SafeFetchError): AttachmentFailureReason {
  if (error instanceof ResponseTooLargeError) return 'too_large'
  return error instanceof UnsafeUrlError ? 'address_refused' : 'not_delivered'
}
