import { expect, test } from 'vitest'
import { canary, encodingsOf, findSecret } from './canary.ts'

test('every encoding is found in the midst of other bytes, and text without the secret is clean', () => {
  const secret = canary()
  for (const [name, bytes] of encodingsOf(secret)) {
    const haystack = Buffer.concat([Buffer.from('before '), bytes, Buffer.from(' after')])
    expect(findSecret(haystack, secret)).toContain(name)
  }
  expect(findSecret(`before ${canary()} after`, secret)).toEqual([])
  expect(findSecret(secret.slice(0, -1), secret)).toEqual([])
})

test.each(['base64', 'base64url'] as const)('%s is found whatever stands before and after', (encoding) => {
  const secret = canary()
  for (const before of ['', 'a', 'ab', 'abc', 'Bearer ']) {
    for (const after of ['', 'z', 'yz', 'xyz']) {
      expect(
        findSecret(Buffer.from(before + secret + after).toString(encoding), secret),
        `${before}|${after}`,
      ).not.toEqual([])
    }
  }
})

test('JSON, percent, hex and HTML forms of a text that holds the secret are found', () => {
  const secret = canary()
  const text = `key=${secret};`
  expect(findSecret(JSON.stringify({ text }), secret)).toContain('json')
  expect(findSecret(encodeURIComponent(text), secret)).toContain('percent')
  expect(findSecret(Buffer.from(text).toString('hex'), secret)).toContain('hex')
  expect(findSecret(Buffer.from(text, 'utf16le'), secret)).toContain('utf16le')
})

test('two canaries differ', () => {
  expect(canary()).not.toBe(canary())
})
