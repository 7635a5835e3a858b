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

/**
 * How many bytes a text in base64 stands for; `undefined` when it is no base64 with its padding. Looks at each
 * character once, so that a long text costs no more than its length.
 */
export function base64Size(text: unknown): number | undefined {
  if (typeof text !== 'string' || text.length % 4 !== 0) return undefined
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  for (let at = 0; at < text.length - padding; at++) {
    if (!isBase64(text.charCodeAt(at))) return undefined
  }
  return (text.length / 4) * 3 - padding
}

/** What is wrong with the images of a message; `undefined` = nothing. Says where, never what is in one. */
export function imagesProblem(images: unknown): string | undefined {
  if (!Array.isArray(images)) return 'images: must be an array'
  if (images.length > IMAGES) return `images: at most ${IMAGES}`
  let total = 0
  for (const [index, image] of images.entries()) {
    const size = imageSize(image)
    if (typeof size === 'string') return `images[${index}]: ${size}`
    total += size
  }
  return total > IMAGES_TOTAL_BYTES ? `images: together over ${IMAGES_TOTAL_BYTES} bytes` : undefined
}

/** What is wrong with one image; `undefined` = nothing. */
export function imageProblem(image: unknown): string | undefined {
  const size = imageSize(image)
  return typeof size === 'string' ? size : undefined
}

/** What is wrong with the files of an answer; `undefined` = nothing. */
export function replyFilesProblem(files: unknown): string | undefined {
  if (!Array.isArray(files)) return 'files: must be an array'
  if (files.length > REPLY_FILES) return `files: at most ${REPLY_FILES}`
  let total = 0
  for (const [index, file] of files.entries()) {
    const { name, data } = record(file)
    if (!isSafeFileName(name)) return `files[${index}]: its name is not safe`
    const size = base64Size(data)
    if (size === undefined) return `files[${index}]: is no base64`
    if (size < 1 || size > REPLY_FILE_BYTES)
      return `files[${index}]: must have 1 to ${REPLY_FILE_BYTES} bytes`
    total += size
  }
  return total > REPLY_FILES_TOTAL_BYTES ? `files: together over ${REPLY_FILES_TOTAL_BYTES} bytes` : undefined
}

function imageSize(image: unknown): number | string {
  const { mimeType, data } = record(image)
  if (!IMAGE_TYPES.some((type) => type === mimeType)) return `must be ${IMAGE_TYPES.join(', ')}`
  const size = base64Size(data)
  if (size === undefined) return 'is no base64'
  return size < 1 || size > IMAGE_BYTES ? `must have 1 to ${IMAGE_BYTES} bytes` : size
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** `A`-`Z`, `a`-`z`, `0`-`9`, `+` and `/`. */
function isBase64(code: number): boolean {
  if (code >= 0x61) return code <= 0x7a
  if (code >= 0x41) return code <= 0x5a
  return (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2f
}
