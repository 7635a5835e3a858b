import { Secret } from '@sandbox/credential-scope'
import { expect, test } from 'vitest'
import { bodyWords, causeWords, loggedWords } from './failure-words.ts'

test('W-27 an error with its causes, and one that is its own cause', () => {
  expect(causeWords(undefined)).toBeUndefined()
  expect(causeWords('text of anybody')).toBe('string')
  const inner = new TypeError('no route to host')
  expect(causeWords(new Error('fetch failed', { cause: inner }))).toBe(
    'Error: fetch failed < TypeError: no route to host',
  )
  const loop = new Error('round')
  loop.cause = loop
  expect(causeWords(loop)?.split(' < ')).toHaveLength(5)
})

test('T31 PB-28 a bounded head, without what the turn has spent', () => {
  const secret = new Secret({ token: 'tok-0123456789abcdef', origin: 'https://a.example' })
  const words = bodyWords(Buffer.from(`{"error":"bad tok-0123456789abcdef"}${'x'.repeat(100_000)}`))
  const logged = loggedWords(words, [secret])
  expect(logged.length).toBeLessThanOrEqual(2000)
  expect(logged).toContain('{"error":"bad ')
  expect(logged).not.toContain('tok-0123456789abcdef')
})
