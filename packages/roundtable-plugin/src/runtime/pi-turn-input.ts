import { randomBytes } from 'node:crypto'
import {
  type ImageType,
  imagesPieces,
  inPieces,
  isSafeFileName,
  limits,
  type PiImage,
} from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import type { PiProgressUpdate } from './pi-progress.ts'
import { checkChannel, copySpeaker } from './turn-snapshot.ts'

/** A file that goes with a message: written into the channel's `attachments` directory, where the agent finds it. */
export interface PiAttachment {
  /** One safe name. It replaces a file of the same name, so put something of the message's own into it. */
  readonly name: string
  /** As the chat service names it; untrusted. */
  readonly mimeType?: string
  /** At most 25 MiB, and 50 MiB for all files of a message. */
  readonly data: Uint8Array
}

/** One message for the Pi agent of a channel. */
export interface PiTurnRequest {
  readonly channel: ChannelKey
  /** Name of one of the runtime's profiles. */
  readonly profile: string
  /** Who pays. `name` is chosen by the speaker. */
  readonly speaker: { readonly id: string; readonly name: string }
  /** At most 100,000 characters. */
  readonly text: string
  /** For the model to look at: at most 8, each 1 byte to 20 MiB, together 64 MiB. */
  readonly images?: readonly { readonly mimeType: string; readonly data: string }[]
  /** At most 20. */
  readonly attachments?: readonly PiAttachment[]
  /** A safe file name of 1 to 64 printable ASCII characters, never used before. Default: a random one. */
  readonly turnId?: string
  /** Ends the turn like `stop` does, but leaves everything else of the channel. */
  readonly signal?: AbortSignal
  /** The answer as it grows. May never be called; the result is the truth. A throw is ignored. */
  onProgress?(progress: PiProgressUpdate): void
}

/** A message as it was admitted: nothing that the caller changes later reaches it. */
export interface PiTurnInput {
  readonly turnId: string
  readonly channel: ChannelKey
  readonly profile: string
  readonly speaker: { readonly id: string; readonly name: string }
  readonly text: string
  readonly images: readonly PiImage[]
  readonly attachments: readonly PiAttachment[]
  readonly signal: AbortSignal | undefined
  readonly onProgress: ((progress: PiProgressUpdate) => void) | undefined
}

const ATTACHMENT_BYTES = 25 * 1024 * 1024
const ATTACHMENTS_BYTES = 50 * 1024 * 1024

/**
 * Copies what a turn is made of, and checks it, but for the bytes of its images: {@link piImagesProblem}. Everything of
 * the request is read here, once.
 * @throws SandboxPluginError `input_invalid`
 */
export function snapshotPiTurn(request: PiTurnRequest): PiTurnInput {
  refuse(typeof request !== 'object' || request === null, 'request', 'must be an object')
  const { channel, profile, text, speaker, signal, onProgress } = request
  const { turnId = randomBytes(12).toString('hex'), images = [], attachments = [] } = request
  checkChannel(channel)
  refuse(typeof profile !== 'string', 'profile', 'must be a string')
  refuse(typeof text !== 'string', 'text', 'must be a string')
  refuse(text.length > limits.PI_TEXT_CHARS, 'text', `has at most ${limits.PI_TEXT_CHARS} characters`)
  refuse(!isTurnId(turnId), 'turnId', 'must be a safe file name of 1 to 64 printable ASCII characters')
  refuse(signal !== undefined && !(signal instanceof AbortSignal), 'signal', 'must be an AbortSignal')
  refuse(onProgress !== undefined && typeof onProgress !== 'function', 'onProgress', 'must be a function')
  return Object.freeze({
    turnId,
    channel,
    profile,
    speaker: copySpeaker(channel, speaker),
    text,
    images: copyImages(images),
    attachments: copyAttachments(attachments),
    signal,
    onProgress: onProgress?.bind(request),
  })
}

/**
 * What is wrong with the images of a turn. They may be large, so others run meanwhile. `undefined` = nothing, or the
 * signal has fired.
 */
export async function piImagesProblem(
  images: readonly PiImage[],
  signal: AbortSignal,
): Promise<SandboxPluginError | undefined> {
  const problem = await inPieces(imagesPieces(images), signal).catch(() => undefined)
  return problem === undefined ? undefined : new SandboxPluginError('input_invalid', problem)
}

function isTurnId(value: unknown): value is string {
  return isSafeFileName(value) && /^[\x21-\x7e]{1,64}$/.test(value)
}

function copyImages(images: NonNullable<PiTurnRequest['images']>): readonly PiImage[] {
  refuse(!Array.isArray(images), 'images', 'must be an array')
  refuse(images.length > limits.IMAGES, 'images', `are at most ${limits.IMAGES}`)
  return Object.freeze(
    images.map((image) => Object.freeze({ mimeType: image?.mimeType as ImageType, data: image?.data })),
  )
}

function copyAttachments(given: readonly PiAttachment[]): readonly PiAttachment[] {
  refuse(!Array.isArray(given), 'attachments', 'must be an array')
  refuse(given.length > limits.ATTACHMENTS, 'attachments', `are at most ${limits.ATTACHMENTS}`)
  const copies = given.map(copyAttachment)
  const total = copies.reduce((sum, { data }) => sum + data.length, 0)
  refuse(total > ATTACHMENTS_BYTES, 'attachments', `together have at most ${ATTACHMENTS_BYTES} bytes`)
  refuse(
    new Set(copies.map(({ name }) => name)).size < copies.length,
    'attachments',
    'must have different names',
  )
  return Object.freeze(copies)
}

function copyAttachment(file: PiAttachment, index: number): PiAttachment {
  const { name, mimeType, data } = file ?? {}
  const what = `attachments[${index}]`
  refuse(!isSafeFileName(name) || Buffer.byteLength(name) > 255, what, 'must have a safe name')
  refuse(!(data instanceof Uint8Array), what, 'must have its data as a Uint8Array')
  refuse(data.length > ATTACHMENT_BYTES, what, `has at most ${ATTACHMENT_BYTES} bytes`)
  refuse(
    mimeType !== undefined && (typeof mimeType !== 'string' || mimeType.length > 128),
    what,
    'mimeType has at most 128 characters',
  )
  return Object.freeze({ name, data: Uint8Array.from(data), ...(mimeType === undefined ? {} : { mimeType }) })
}

function refuse(wrong: boolean, field: string, problem: string): void {
  if (wrong) throw new SandboxPluginError('input_invalid', `${field} ${problem}`)
}
