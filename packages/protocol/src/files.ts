import {
  FILE_NAME_CHARS,
  IMAGE_BYTES,
  IMAGES,
  IMAGES_TOTAL_BYTES,
  REPLY_FILE_BYTES,
  REPLY_FILES,
  REPLY_FILES_TOTAL_BYTES,
} from './limits.ts'

/** The kinds of image that may travel. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'] as const
/** One of {@link IMAGE_TYPES}. */
export type ImageType = (typeof IMAGE_TYPES)[number]

/** An image in base64: 1 byte to 20 MiB when decoded. */
export interface PiImage {
  readonly mimeType: ImageType
  readonly data: string
}

/** A file that goes with an answer, in base64: 1 byte to 10 MiB when decoded. */
export interface PiReplyFile {
  /** Safe: see {@link isSafeFileName}. */
  readonly name: string
  readonly data: string
}

const UNSAFE_CHARS = /[/\\\p{Cc}]/u

/**
 * Whether a name names a file in a directory and nothing else: 1 to 255 characters, no slash, backslash or control
 * character, not `.` or `..`.
 */
export function isSafeFileName(name: unknown): name is string {
  if (typeof name !== 'string' || name === '' || name.length > FILE_NAME_CHARS) return false
  return name !== '.' && name !== '..' && !UNSAFE_CHARS.test(name)
}

/** Work that can be interrupted wherever it yields. */
export type Pieces<T> = Generator<undefined, T, undefined>

/** A multiple of four. */
const PIECE_CHARS = 64 * 1024

/**
 * How many bytes a text in base64 stands for; `undefined` when it is no base64 with its padding. Yields every 64 KiB:
 * a file takes tens of milliseconds.
 */
export function* base64Pieces(text: unknown): Pieces<number | undefined> {
  if (typeof text !== 'string' || text.length % 4 !== 0) return undefined
  const size = sizeOf(text)
  for (let at = 0; at < text.length; at += PIECE_CHARS) {
    const piece = text.slice(at, at + PIECE_CHARS)
    // What is no base64 is skipped by the decoder, but for the letters of its other alphabet.
    if (Buffer.from(piece, 'base64').length !== sizeOf(piece) || /[-_]/.test(piece)) return undefined
    if (at + PIECE_CHARS < text.length && piece.endsWith('=')) return undefined
    yield
  }
  return size
}

/** {@link base64Pieces} in one go. */
export function base64Size(text: unknown): number | undefined {
  return atOnce(base64Pieces(text))
}

/** What is wrong with the images of a message; `undefined` = nothing. Says where, never what is in one. */
export function* imagesPieces(images: unknown): Pieces<string | undefined> {
  if (!Array.isArray(images)) return 'images: must be an array'
  if (images.length > IMAGES) return `images: at most ${IMAGES}`
  let total = 0
  for (const [index, image] of images.entries()) {
    const size = yield* imageSize(image)
    if (typeof size === 'string') return `images[${index}]: ${size}`
    total += size
  }
  return total > IMAGES_TOTAL_BYTES ? `images: together over ${IMAGES_TOTAL_BYTES} bytes` : undefined
}

/** {@link imagesPieces} in one go. */
export function imagesProblem(images: unknown): string | undefined {
  return atOnce(imagesPieces(images))
}

/** What is wrong with one image; `undefined` = nothing. */
export function imageProblem(image: unknown): string | undefined {
  const size = atOnce(imageSize(image))
  return typeof size === 'string' ? size : undefined
}

/** What is wrong with the files of an answer; `undefined` = nothing. Yields between pieces of them. */
export function* replyFilesPieces(files: unknown): Pieces<string | undefined> {
  if (!Array.isArray(files)) return 'files: must be an array'
  if (files.length > REPLY_FILES) return `files: at most ${REPLY_FILES}`
  let total = 0
  for (const [index, file] of files.entries()) {
    const { name, data } = record(file)
    if (!isSafeFileName(name)) return `files[${index}]: its name is not safe`
    const size = yield* base64Pieces(data)
    if (size === undefined) return `files[${index}]: is no base64`
    if (size < 1 || size > REPLY_FILE_BYTES)
      return `files[${index}]: must have 1 to ${REPLY_FILE_BYTES} bytes`
    total += size
  }
  return total > REPLY_FILES_TOTAL_BYTES ? `files: together over ${REPLY_FILES_TOTAL_BYTES} bytes` : undefined
}

/** {@link replyFilesPieces} in one go. */
export function replyFilesProblem(files: unknown): string | undefined {
  return atOnce(replyFilesPieces(files))
}

/** Does work in one go. */
export function atOnce<T>(work: Pieces<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

function* imageSize(image: unknown): Pieces<number | string> {
  const { mimeType, data } = record(image)
  if (!IMAGE_TYPES.some((type) => type === mimeType)) return `must be ${IMAGE_TYPES.join(', ')}`
  const size = yield* base64Pieces(data)
  if (size === undefined) return 'is no base64'
  return size < 1 || size > IMAGE_BYTES ? `must have 1 to ${IMAGE_BYTES} bytes` : size
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function sizeOf(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return (base64.length / 4) * 3 - padding
}
