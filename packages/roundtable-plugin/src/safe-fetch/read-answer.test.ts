import { expect, test } from 'vitest'
import { readAnswer } from './read-answer.ts'

test('SF-11 an answer is kept as bytes, not as the pieces in which a stranger sends it', async () => {
  async function* pieces() {
    const piece = Buffer.alloc(1)
    for (let value = 0; value < 200_000; value += 1) {
      piece[0] = value % 251
      yield piece
    }
  }
  const bytes = await readAnswer(pieces(), { status: 200, headers: new Headers() }, 200_000)
  expect(bytes.length).toBe(200_000)
  expect(bytes.every((byte, index) => byte === index % 251)).toBe(true)
})
