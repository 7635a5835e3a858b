import { expect, test } from 'vitest'
import { readArguments } from './arguments.ts'

test('decision 6: the defaults are the paths inside a container', () => {
  const defaults = { socket: '/run/sandbox/worker.sock', workspace: '/workspace', more: {} }
  expect(readArguments([])).toEqual(defaults)
})

test('decision 26: both paths can be given', () => {
  const paths = readArguments(['--workspace', '/w', '--socket', '/s'])
  expect(paths).toEqual({ socket: '/s', workspace: '/w', more: {} })
})

test('a worker may take other paths, with defaults of its own', () => {
  expect(readArguments([], { content: '/c' }).more).toEqual({ content: '/c' })
  expect(readArguments(['--content', '/d'], { content: '/c' }).more).toEqual({ content: '/d' })
})

test.each([
  ['an unknown argument', ['--sock', '/x']],
  ['a path that this worker does not take', ['--content', '/x']],
  ['a word without dashes', ['socket', '/x']],
  ['a missing value', ['--socket']],
  ['a relative path', ['--workspace', 'here']],
  ['a socket path over 107 bytes', ['--socket', `/${'ü'.repeat(54)}`]],
])('%s is refused', (_, args) => {
  expect(() => readArguments(args)).toThrow(expect.objectContaining({ code: 'usage' }))
})
