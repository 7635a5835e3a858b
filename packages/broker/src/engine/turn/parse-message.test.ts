import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { parseMessage } from './parse-message.ts'

const NEVER = new AbortController().signal
const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
const padded = (value: object) => ({ ...value, padding: 'x'.repeat(300_000) })

const VALUES: readonly object[] = [
  {},
  { a: [1, -2.5e3, true, false, null, '', 'a"b\\c\u0000é😀', [], [[{}]]], b: { c: { d: 'e' } } },
  { constructor: 1, toString: [2], 'a.b': { '': 3 } },
]

test.each(VALUES)('%j reads the same in one piece and in many', async (value) => {
  expect(await parseMessage(bytes(value), NEVER)).toEqual(value)
  expect(await parseMessage(bytes(padded(value)), NEVER)).toEqual(padded(value))
})

test('a name that would reach the prototype is left out', async () => {
  const text = `{"__proto__":{"polluted":1},"padding":"${'x'.repeat(300_000)}"}`
  const read = await parseMessage(bytes(text), NEVER)
  expect([Object.getPrototypeOf(read), read.polluted]).toEqual([Object.prototype, undefined])
})

test.each(['[]', '"text"', '{', '{"a":1', '{"a":1,"a":2}', `${'['.repeat(65)}`, '{"a":\u0000}'])(
  '%j is refused, small or large',
  async (text) => {
    const large = text.padEnd(300_000, ' ')
    await expect(parseMessage(bytes(large), NEVER)).rejects.toMatchObject({ reason: 'body_invalid' })
    if (text === '{"a":1,"a":2}') return
    await expect(parseMessage(bytes(text), NEVER)).rejects.toMatchObject({ reason: 'body_invalid' })
  },
)

test('W-31 others run while a large one is read, and the signal ends it', async () => {
  const large = bytes({ list: Array.from({ length: 1_000_000 }, (_, index) => index) })
  const control = new AbortController()
  let others = 0
  let done = false
  const reading = expect(
    parseMessage(large, control.signal).finally(() => {
      done = true
    }),
  ).rejects.toBe('left')
  while (!done) {
    await setImmediate()
    others += 1
    if (others === 3) control.abort('left')
  }
  await reading
  expect(others).toBeGreaterThanOrEqual(3)
})
