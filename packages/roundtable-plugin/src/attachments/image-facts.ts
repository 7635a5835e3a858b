import type { ImageType } from '@sandbox/protocol'
import { imageSize } from 'image-size'

/** What the first bytes of an image say about it. */
export interface ImageFacts {
  readonly mimeType: ImageType
  readonly width: number
  readonly height: number
}

const TYPES: Readonly<Record<string, ImageType>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
}

/**
 * A size stands in front, behind a few segments at most. Whoever reads on walks through whatever a stranger sent, byte
 * by byte: 4 s for 25 MiB, in which the host does nothing else.
 */
const HEAD_BYTES = 256 * 1024

/** Reads type and size of an image from its own bytes, decoding nothing; `undefined` when it is none that may travel. */
export function imageFacts(bytes: Uint8Array): ImageFacts | undefined {
  if (kindOf(bytes) === undefined) return undefined
  try {
    const { type = '', width, height } = imageSize(bytes.subarray(0, HEAD_BYTES))
    const mimeType = TYPES[type]
    return mimeType === undefined || !(width > 0 && height > 0) ? undefined : { mimeType, width, height }
  } catch {
    return undefined
  }
}

/** The signatures of the four kinds, so that no reader of another format ever sees a stranger's bytes. */
function kindOf(bytes: Uint8Array): ImageType | undefined {
  const head = Buffer.from(bytes.subarray(0, 12)).toString('latin1')
  if (head.startsWith('\x89PNG\r\n\x1a\n')) return 'image/png'
  if (head.startsWith('\xff\xd8\xff')) return 'image/jpeg'
  if (head.startsWith('GIF87a') || head.startsWith('GIF89a')) return 'image/gif'
  return head.startsWith('RIFF') && head.endsWith('WEBP') ? 'image/webp' : undefined
}
