import { isSafeFileName } from '@sandbox/protocol'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { attachmentName } from './attachment-name.ts'

const named = (name: string) => attachmentName('m', { index: 3, name, quoted: false })

test.each([
  ['photo.png', 'm-3-photo.png'],
  ['a/b\\c.txt', 'm-3-a_b_c.txt'],
  ['..', 'm-3-__'],
  ['...hidden', 'm-3-___hidden'],
  ['a\u0000b\u001fc\u007fd', 'm-3-a_b_c_d'],
  ['', 'm-3-file'],
  ['e\u0301', 'm-3-\u00e9'],
  ['\ud800x', 'm-3-\ufffdx'],
])('AT-04 %j is kept as %j', (name, kept) => {
  expect(named(name)).toBe(kept)
})

test('AT-04 one of a quoted message says so', () => {
  expect(attachmentName('m', { index: 0, name: 'a', quoted: true })).toBe('m-ref-0-a')
})

test('W-83 a long name is cut by bytes between characters, and keeps its extension', () => {
  expect(named(`${'漢'.repeat(200)}.jpeg`)).toBe(`m-3-${'漢'.repeat(38)}.jpeg`)
  const family = '👨‍👩‍👧‍👦'
  expect(named(family.repeat(20))).toBe(`m-3-${family.repeat(4)}`)
  expect(named(`a.${'x'.repeat(300)}`)).toBe(`m-3-a.${'x'.repeat(118)}`)
})

test('MD-01 AT-04 whatever a stranger calls a file, its name is safe and fits a directory', () => {
  const ids = fc.stringMatching(/^[a-zA-Z0-9_-]{1,160}$/)
  fc.assert(
    fc.property(ids, fc.string({ unit: 'binary', maxLength: 400 }), fc.boolean(), (id, name, quoted) => {
      const kept = attachmentName(id, { index: 19, name, quoted })
      expect(isSafeFileName(kept)).toBe(true)
      expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(255)
      expect(kept.startsWith(`${id}-`)).toBe(true)
    }),
  )
})
