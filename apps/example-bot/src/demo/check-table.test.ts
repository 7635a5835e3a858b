import { expect, it } from 'vitest'
import type { CheckRow } from './check-row.ts'
import { checkTable } from './check-table.ts'

const row: CheckRow = {
  turn: 1,
  channel: 'demo:alpha',
  speaker: 'u-cleo',
  about: 'a key by channel',
  keyExpected: 'aaaa1111',
  keyUsed: 'aaaa1111',
  driver: 'docker',
  ms: 123,
  outcome: 'answered',
  ok: true,
  problems: [],
}

it('a row a turn below one head, and a last line that counts', () => {
  const lines = checkTable([row, { ...row, turn: 0, channel: '*' }]).split('\n')
  expect(lines[0]).toMatch(/^turn {2}channel {5}speaker {2}what .* key expected {2}key used .* ms {2}outcome/)
  expect(lines[1]).toMatch(
    /^ {3}1 {2}demo:alpha {2}u-cleo .* aaaa1111 .* aaaa1111 .* docker {2}123 {2}answered {2}ok$/,
  )
  expect(lines[2]).toMatch(/^ {3}\* {2}\* /)
  expect(lines.slice(3)).toEqual(['', 'all 2 rows as expected', ''])
})

it('what is wrong stands below its row, cut when it is much', () => {
  const problems = Array.from({ length: 20 }, (_, n) => `problem ${n}`)
  const text = checkTable([row, { ...row, ok: false, problems }])
  expect(text).toContain('WRONG\n      problem 0\n')
  expect(text).toContain('      and 8 more, see --json\n')
  expect(text).toContain('1 of 2 rows are wrong')
})

it('attempts are counted', () => {
  const attempts = [
    { attempt: 'a', expected: 404, status: 404, ok: true },
    { attempt: 'b', expected: 404, status: 200, ok: false },
  ]
  expect(checkTable([{ ...row, attempts }])).toContain('1 of 2 attempts ended as they must')
})

it('colours only when asked for', () => {
  expect(checkTable([row])).not.toContain('\x1b')
  expect(checkTable([row], { colour: true })).toContain('\x1b[32mall 1 rows')
})
