import { isPiTurn, type PiTurn, PROTOCOL_VERSION } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import { readPiTurn } from './turn-check.ts'

const spec = { name: 'tide', description: 'The tide', parameters: {} }
const full: PiTurn = {
  protocol: PROTOCOL_VERSION,
  turnId: 'turn-1',
  nonce: 'turn-nonce-0123456789',
  remainingMs: 60_000,
  text: 'Hello',
  speaker: { id: 'u-ann', name: 'Ann' },
  profile: 'default',
  thinking: 'low',
  model: 'some-model',
  timeZone: 'Europe/Berlin',
  prompt: 'p',
  memory: 'm',
  attachments: [{ name: 'a.txt', mimeType: 'text/plain', bytes: 3 }],
  images: [{ mimeType: 'image/png', data: 'QQ==' }],
  mcp: [{ name: 'wiki', tools: [spec] }],
}

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

test('W-52 what the protocol calls a turn is one, and unknown fields do not matter', () => {
  expect(isPiTurn(full)).toBe(true)
  expect(readPiTurn({ ...full, later: 1 })).toMatchObject(full)
  const both = variants().map(([path, value]) => ({ path, host: isPiTurn(value), worker: readPiTurn(value) }))
  expect(both.length).toBeGreaterThan(250)
  // The host has checked lengths and patterns; the worker refuses nothing that the host lets pass.
  const refused = both.filter(({ path, host, worker }) => host && worker === undefined && path !== 'protocol')
  expect(refused).toEqual([])
})

test.each([
  'protocol',
  'turnId',
  'nonce',
  'text',
  'speaker',
  'thinking',
  'model',
  'attachments',
  'images',
  'mcp',
])('W-52 a turn without %s is none', (field) =>
  expect(readPiTurn({ ...full, [field]: undefined })).toBeUndefined(),
)

test.each([null, [], 'turn', 7])('%j is no turn', (value) => expect(readPiTurn(value)).toBeUndefined())
