import { isSealedTurn } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import { sampleTurn } from '../../testing/worker-host.ts'
import { readTurnId } from '../shared/turn-id.ts'
import { readTurn } from './turn-check.ts'

const spec = { name: 'clock', description: 'Tells the time', parameters: {} }
const full = sampleTurn({ prompt: 'p', tools: [spec], mcp: [{ name: 'files', tools: [spec] }] })

/** Every field of the turn, at any depth, replaced by values of other types, or left out. */
function variants(): [string, unknown][] {
  const found: [string, unknown][] = []
  const visit = (value: unknown, path: string[]) => {
    if (typeof value !== 'object' || value === null) return
    for (const [key, child] of Object.entries(value)) {
      for (const other of [null, 7, 1.5, 'text', '', '../x', true, [], {}, [null], undefined]) {
        const copy = structuredClone(full)
        const parent = path.reduce((part, step) => (part as never)[step], copy as unknown)
        Object.assign(parent as object, { [key]: other })
        found.push([[...path, key].join('.'), JSON.parse(JSON.stringify(copy))])
      }
      visit(child, [...path, key])
    }
  }
  visit(full, [])
  return found
}

test('reads a turn with every field, and one with the fewest', () => {
  expect(readTurn(full)).toEqual(full)
  expect(readTurn(sampleTurn())).toEqual(sampleTurn())
})

test("W-52 accepts whatever the protocol's own check accepts", () => {
  const accepted = variants().filter(([, turn]) => isSealedTurn(turn))
  expect(accepted.length).toBeGreaterThan(20)
  for (const [path, turn] of accepted) {
    if (path !== 'protocol' && path !== 'nonce') expect(readTurn(turn), path).toEqual(turn)
  }
})

test('WA-01 refuses every field of a wrong type', () => {
  const lengthsOnly = new Set(['turnId', 'nonce', 'text', 'model', 'timeZone', 'speaker.id', 'speaker.name'])
  const wrong = variants().filter(([path, turn]) => !isSealedTurn(turn) && !lengthsOnly.has(path))
  expect(wrong.length).toBeGreaterThan(100)
  for (const [path, turn] of wrong) expect(readTurn(turn), `${path} ${JSON.stringify(turn)}`).toBeUndefined()
})

test.each([null, 7, 'turn', [], {}])('WA-01 refuses %j', (value) => {
  expect(readTurn(value)).toBeUndefined()
  expect(readTurnId(value)).toBeUndefined()
})

test('a turn of another version and a nonce that is no header are refused', () => {
  expect(readTurn(sampleTurn({ protocol: 2 }))).toBeUndefined()
  expect(readTurn(sampleTurn({ nonce: 'line\r\nbreak: 1234567890' }))).toBeUndefined()
})

test('the id of a broken turn can be read', () => {
  expect(readTurnId({ turnId: 't' })).toBe('t')
  expect(readTurnId({ turnId: 'x'.repeat(65) })).toBeUndefined()
})
