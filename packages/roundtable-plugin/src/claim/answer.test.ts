import { expect, test } from 'vitest'
import { splitReply } from './answer.ts'

test('KH-02 blank text gives no chunk', () => {
  expect(splitReply('')).toEqual([])
  expect(splitReply(' \n\t\n')).toEqual([])
})

test('KH-02 paragraphs stay whole and are packed up to the limit', () => {
  expect(splitReply('one\n\ntwo\n\n\nthree', 8)).toEqual(['one\n\ntwo', 'three'])
  expect(splitReply('one\r\ntwo\r\n\r\nthree', 2000)).toEqual(['one\ntwo\n\nthree'])
  const exact = 'x'.repeat(2000)
  expect(splitReply(exact)).toEqual([exact])
})

test('KH-02 longer prose is cut at line ends, then between code points', () => {
  expect(splitReply('aaaa\nbbbb\ncc', 9)).toEqual(['aaaa\nbbbb', 'cc'])
  expect(splitReply('abcdefghij', 4)).toEqual(['abcd', 'efgh', 'ij'])
  expect(splitReply('a😀😀', 2)).toEqual(['a', '😀', '😀'])
})

test('KH-02 a fenced block is one unit, blank lines in it included', () => {
  const block = '```js\na\n\nb\n```'
  expect(splitReply(`${'x'.repeat(10)}\n\n${block}`, 20)).toEqual(['x'.repeat(10), block])
  expect(splitReply(`before\n${block}\nafter`)).toEqual([`before\n${block}\nafter`])
})

test('KH-02 a longer fenced block is reopened with its own line and closed in each piece', () => {
  const lines = ['aaaaaaaa', 'bbbbbbbb', 'cccccccc']
  expect(splitReply(['```js', ...lines, '```'].join('\n'), 28)).toEqual([
    '```js\naaaaaaaa\nbbbbbbbb\n```',
    '```js\ncccccccc\n```',
  ])
  expect(splitReply(['~~~~', ...lines].join('\n'), 20)).toEqual(lines.map((line) => `~~~~\n${line}\n~~~~`))
})

test('KH-02 a shorter or different fence does not close a block', () => {
  const text = '````\n```\n~~~~\nend\n````'
  expect(splitReply(text)).toEqual([text])
})

/** Small deterministic generator; the seed is in the test's name when it fails. */
function random(seed: number) {
  let state = seed
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

test('KH-02 whatever the text: no chunk over the limit, blank, torn in a character or with an open fence', () => {
  // Fences stand on lines of their own: a run of backticks inside a line may become a fence by being cut before it.
  const parts = ['\n```\n', '\n````js\n', '\n~~~\n', '\n', '\n\n', ' ', '😀', 'word ', 'x'.repeat(50), '\r\n']
  for (let seed = 1; seed <= 400; seed += 1) {
    const pick = random(seed)
    const text = Array.from({ length: pick(60) }, () => parts[pick(parts.length)]).join('')
    const limit = 30 + pick(60)
    for (const chunk of splitReply(text, limit)) {
      expect(chunk.length, `seed ${seed}`).toBeLessThanOrEqual(limit)
      expect(chunk.trim(), `seed ${seed}`).not.toBe('')
      expect(/\p{Surrogate}/u.test(chunk), `seed ${seed}`).toBe(false)
      expect(splitReply(chunk, 10_000).join(''), `seed ${seed}`).toBe(chunk.replace(/^\n+|\n+$/g, ''))
    }
    const words = (each: string) => each.replaceAll(/[^wordx😀]/gu, '')
    expect(words(splitReply(text, limit).join('')).length, `seed ${seed}`).toBeGreaterThanOrEqual(
      words(text).length,
    )
  }
})
