import { join } from 'node:path'
import { IMAGE_TYPES, type ImageType, isSafeFileName, limits } from '@sandbox/protocol'
import { readFileHead } from '../shared/bounded-file.ts'
import { GuestError } from '../shared/errors.ts'

/** Part of an attachment, as the model sees it. */
export type AttachmentPart =
  | { readonly text: string }
  | { readonly image: { readonly mimeType: ImageType; readonly data: string } }

const TEXT_CHARS = 40_000
const TEXT_BYTES = 8 * 1024 * 1024

/**
 * An attachment from the workspace's `attachments` directory: an image whole, a text from a character on, 40,000 of
 * them at most. Throws a {@link GuestError} `tool_refused` for anything else, links included.
 */
export function readAttachment(workspace: string, name: string, from = 0): AttachmentPart {
  if (!isSafeFileName(name)) throw new GuestError('tool_refused', 'There is no such attachment.')
  const found = head(join(workspace, 'attachments', name))
  const type = imageType(found.bytes)
  if (type !== undefined) {
    if (found.size > limits.IMAGE_BYTES) throw new GuestError('tool_refused', 'The image is too large.')
    return { image: { mimeType: type, data: found.bytes.toString('base64') } }
  }
  const text = found.bytes.subarray(0, TEXT_BYTES).toString('utf8')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how bytes that are no text are told
  if (/\u0000/.test(text.slice(0, 8192))) {
    return { text: `[${name}: ${found.size} bytes that are no text]` }
  }
  const part = text.slice(from, from + TEXT_CHARS)
  const left = text.length - from - part.length
  const more = left > 0 ? `\n\n[cut: ${left} more characters, read on with from: ${from + part.length}]` : ''
  return { text: part + more }
}

function head(path: string): { bytes: Buffer; size: number } {
  try {
    const found = readFileHead(path, limits.IMAGE_BYTES)
    if (found !== undefined) return found
  } catch {
    // As if it were not there.
  }
  throw new GuestError('tool_refused', 'There is no such attachment.')
}

/** By its first bytes: what a chat service called a file is nobody's promise. */
function imageType(bytes: Buffer): ImageType | undefined {
  const starts = (hex: string, at = 0) => bytes.subarray(at, at + hex.length / 2).toString('hex') === hex
  const marks: readonly boolean[] = [
    starts('89504e470d0a1a0a'),
    starts('ffd8ff'),
    starts('52494646') && starts('57454250', 8),
    starts('474946383761') || starts('474946383961'),
  ]
  return IMAGE_TYPES[marks.indexOf(true)]
}
