import { describe, expect, test } from 'vitest'
import {
  base64Pieces,
  base64Size,
  imageProblem,
  imagesProblem,
  isSafeFileName,
  replyFilesProblem,
} from './files.ts'
import { IMAGE_BYTES, REPLY_FILE_BYTES } from './limits.ts'

describe('MD-01 safe file names', () => {
  test.each(['a', 'Bericht 2026.pdf', '報告.png', '.hidden', '...', 'x'.repeat(255)])('%s is one', (name) => {
    expect(isSafeFileName(name)).toBe(true)
  })
  test.each(['', '.', '..', 'a/b', '/', 'a\\b', 'a\0', 'a\nb', '\u0085', 'x'.repeat(256), 7, undefined])(
    '%j is none',
    (name) => {
      expect(isSafeFileName(name)).toBe(false)
    },
  )
})

describe('base64', () => {
  test('the size is that of the bytes', () => {
    for (const size of [0, 1, 2, 3, 4, 100]) {
      expect(base64Size(Buffer.alloc(size, 250).toString('base64'))).toBe(size)
    }
  })
  test.each(['A', 'AAA', 'AA=A', '=AAA', 'AA-_', 'A A=', 'AAA\n', 'ÄAAA', '====', 7])(
    '%j is none',
    (text) => {
      expect(base64Size(text)).toBeUndefined()
    },
  )
})

describe('W-31 long base64', () => {
  const long = Buffer.alloc(300_000, 7).toString('base64')
  test('is looked at piece by piece', () => {
    const pieces = base64Pieces(long)
    let yields = 0
    for (;;) {
      const step = pieces.next()
      if (step.done) {
        expect(step.value).toBe(300_000)
        break
      }
      yields += 1
    }
    expect(yields).toBe(Math.ceil(long.length / 65_536))
  })
  test.each([0, 65_535, 65_536, 200_000, 399_999])('one wrong letter at %i is found', (at) => {
    for (const letter of ['-', '_', ' ', '\n', '=', 'é', '\0', '.']) {
      const wrong = long.slice(0, at) + letter + long.slice(at + 1)
      const ends = letter === '=' && at === 399_999
      expect(base64Size(wrong)).toBe(ends ? 299_999 : undefined)
    }
  })
  test('padding stands at the end only', () => {
    expect(base64Size(`${'A'.repeat(65_534)}==${'A'.repeat(4)}`)).toBeUndefined()
  })
})

describe('MD-02 images', () => {
  const image = (changes: object = {}) => ({ mimeType: 'image/png', data: 'AAAA', ...changes })
  const sized = (bytes: number) => image({ data: Buffer.alloc(bytes).toString('base64') })
  test('the four kinds pass, up to eight of them', () => {
    for (const mimeType of ['image/png', 'image/jpeg', 'image/webp', 'image/gif']) {
      expect(imageProblem(image({ mimeType }))).toBeUndefined()
    }
    expect(imagesProblem(Array(8).fill(image()))).toBeUndefined()
    expect(imagesProblem([])).toBeUndefined()
  })
  test.each([
    ['another kind', [image({ mimeType: 'image/svg+xml' })]],
    ['nothing in it', [image({ data: '' })]],
    ['no base64', [image({ data: 'AAA' })]],
    ['a URL', [image({ data: 'https://a.example/' })]],
    ['nine', Array(9).fill(image())],
    ['no list', image()],
    ['null', [null]],
  ])('%s is refused', (_what, images) => {
    expect(imagesProblem(images)).toMatch(/^images/)
  })
  test('each is at most 20 MiB, all together 64 MiB', () => {
    expect(imagesProblem([sized(IMAGE_BYTES)])).toBeUndefined()
    expect(imagesProblem([sized(IMAGE_BYTES + 1)])).toContain('images[0]')
    const large = sized(IMAGE_BYTES)
    expect(imagesProblem([large, large, large])).toBeUndefined()
    expect(imagesProblem([large, large, large, large])).toContain('together')
  })
})

describe('MD-03 reply files', () => {
  const file = (changes: object = {}) => ({ name: 'a.txt', data: 'AAAA', ...changes })
  test.each([
    ['an unsafe name', [file({ name: '../a' })]],
    ['nothing in it', [file({ data: '' })]],
    ['eleven', Array(11).fill(file())],
    ['more than 10 MiB', [file({ data: Buffer.alloc(REPLY_FILE_BYTES + 1).toString('base64') })]],
  ])('%s is refused', (_what, files) => {
    expect(replyFilesProblem(files)).toMatch(/^files/)
  })
  test('ten pass, of 50 MiB together', () => {
    expect(replyFilesProblem(Array(10).fill(file()))).toBeUndefined()
    const large = file({ data: Buffer.alloc(REPLY_FILE_BYTES).toString('base64') })
    expect(replyFilesProblem(Array(5).fill(large))).toBeUndefined()
    expect(replyFilesProblem(Array(6).fill(large))).toContain('together')
  })
})
