import { expect, test } from 'vitest'
import { readArguments } from './arguments.ts'

test('decision 6: the defaults are the paths inside a container', () => {
  expect(readArguments([])).toEqual({ socket: '/run/sandbox/worker.sock', workspace: '/workspace' })
})

test('decision 26: both paths can be given', () => {
  expect(readArguments(['--workspace', '/w', '--socket', '/s'])).toEqual({ socket: '/s', workspace: '/w' })
})

test.each([
  ['an unknown argument', ['--sock', '/x']],
  ['a missing value', ['--socket']],
  ['a relative path', ['--workspace', 'here']],
  ['a socket path over 107 bytes', ['--socket', `/${'ü'.repeat(54)}`]],
])('%s is refused', (_, args) => {
  expect(() => readArguments(args)).toThrow(expect.objectContaining({ code: 'usage' }))
})
