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

test('KH-02 longer prose is cut at line ends, then after sentences, between words, between code points', () => {
  expect(splitReply('aaaa\nbbbb\ncc', 9)).toEqual(['aaaa\nbbbb', 'cc'])
  expect(splitReply('One is here. Two is "there!" Three', 28)).toEqual([
    'One is here. Two is "there!"',
    'Three',
  ])
  expect(splitReply('One is here. Two is "there!" Three', 27)).toEqual([
    'One is here. Two is',
    '"there!" Three',
  ])
  expect(splitReply('Hi. A sentence that goes on', 20)).toEqual(['Hi. A sentence that', 'goes on'])
  expect(splitReply('\u4e00\u4e8c\u3002\u4e09\u56db\u4e94', 4)).toEqual([
    '\u4e00\u4e8c\u3002',
    '\u4e09\u56db\u4e94',
  ])
  expect(splitReply(`${'a'.repeat(12)}   \nb`, 12)).toEqual(['a'.repeat(12), 'b'])
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

test('KH-02 a fenced block of a list is one, too, however far it is indented', () => {
  const lines = [`      ${'a'.repeat(24)}`, `      ${'b'.repeat(24)}`]
  expect(splitReply(['1. list', '      ```js', ...lines, '      ```'].join('\n'), 50)).toEqual([
    '1. list',
    ...lines.map((line) => `      \`\`\`js\n${line}\n\`\`\``),
  ])
})

test('KH-02 code is cut at line ends only, and a longer line where it is full', () => {
  expect(splitReply('```\nlet a. b = c. d\n```', 18)).toEqual(['```\nlet a. b =\n```', '```\n c. d\n```'])
})

test('KH-02 a fence without room for its own lines is cut as it is, and no chunk is blank: a chat takes none', () => {
  const chunks = splitReply(`\`\`\`\n${'\n'.repeat(20)}a\n\`\`\``, 5)
  expect(chunks).toEqual(['```\n\n', 'a\n```'])
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

test('KH-02 fences by the hundred thousand are cut in one pass: a reply that a guest made up holds no host', () => {
  // Were the end of each looked for from the first line on, this would take minutes.
  expect(splitReply('```\n'.repeat(500_000)).length).toBeGreaterThan(900)
})
