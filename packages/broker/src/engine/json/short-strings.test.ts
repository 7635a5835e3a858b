import { describe, expect, it } from 'vitest'
import { ShortStrings } from './short-strings.ts'

describe('ShortStrings', () => {
  it('never takes a string for another one whose characters are its bytes', () => {
    for (let prefix = 0x20; prefix < 0x7f; prefix++) {
      for (let last = 0x80; last < 0xc0; last++) {
        const short = Buffer.from([prefix, 0xc3, last])
        const lookalike = Buffer.from(short.toString('latin1'))
        const strings = new ShortStrings(Buffer.concat([lookalike, short]))
        expect(strings.decode(0, lookalike.length, false)).toBe(lookalike.toString())
        const end = lookalike.length + short.length
        expect(strings.decode(lookalike.length, end, false)).toBe(short.toString())
      }
    }
  })

  it('gives a string that comes again, and others in its place, as they are', () => {
    const words = Array.from({ length: 2000 }, (_, i) => `w${i % 700}`)
    const strings = new ShortStrings(Buffer.from(words.join('')))
    let at = 0
    for (const word of words) {
      expect(strings.decode(at, at + word.length, false)).toBe(word)
      at += word.length
    }
  })
})
