import { expect, test } from 'vitest'
import { imageFacts } from './image-facts.ts'

/** A JPEG of 3 × 2 with so many segments of 64 KiB before the one that says so. */
function jpeg(segments: number): Uint8Array {
  const filler = Buffer.alloc(2 + 65_535)
  filler.set([0xff, 0xe2, 0xff, 0xff])
  const size = Buffer.from([0xff, 0xc0, 0, 11, 8, 0, 2, 0, 3, 1, 1, 0x11, 0])
  return new Uint8Array(Buffer.concat([Buffer.from([0xff, 0xd8]), ...Array(segments).fill(filler), size]))
}

test('W-86 a size behind other segments is found, and looked for in the first 256 KiB alone', () => {
  expect(imageFacts(jpeg(1))).toEqual({ mimeType: 'image/jpeg', width: 3, height: 2 })
  expect(imageFacts(jpeg(3))).toEqual({ mimeType: 'image/jpeg', width: 3, height: 2 })
  expect(imageFacts(jpeg(5))).toBeUndefined()
})
