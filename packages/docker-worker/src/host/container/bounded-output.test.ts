import { expect, test } from 'vitest'
import { createBoundedOutput } from './bounded-output.ts'

const bytes = (text: string) => Buffer.from(text)

test('W-62 keeps the tail and says how much was cut', () => {
  const output = createBoundedOutput({ maxBytes: 8 })
  for (const part of ['aaaa', 'bbbb', 'cccc', 'dddd', 'eeee']) output.push(bytes(part))
  expect(output.text()).toBe('[12 bytes cut]\nddddeeee')
  expect(output.text()).toBe('[12 bytes cut]\nddddeeee')
})

test('one chunk over the limit, and a reused buffer, are no trouble', () => {
  const output = createBoundedOutput({ maxBytes: 4 })
  const chunk = bytes('0123456789')
  output.push(chunk)
  chunk.fill('x')
  expect(output.text()).toBe('[6 bytes cut]\n6789')
})

test('decision 24: what anybody sees went through scrub, characters split over chunks included', () => {
  const output = createBoundedOutput({ scrub: (text) => text.replaceAll('käse', '[gone]') })
  const text = bytes('a käse b')
  output.push(text.subarray(0, 4))
  output.push(text.subarray(4))
  expect(output.text()).toBe('a [gone] b')
})

test('a guest cannot write control characters into a terminal or a log', () => {
  const output = createBoundedOutput()
  output.push(bytes('\u001b[31mred\u001b[0m\u0007\rline\ttab\n\u009b2Jend'))
  expect(output.text()).toBe('redline\ttab\n2Jend')
})
