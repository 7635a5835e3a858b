import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readFields } from './read-fields.ts'

const signal = new AbortController().signal
const read = async (text: string) =>
  (await readFields(Buffer.from(text), { names: new Set(['id', 'usage']), signal })).found

test('fields at the top, of any kind, and nothing below', async () => {
  const answer = { usage: { n: [1, { usage: 2 }] }, x: { id: 3 }, y: [{ id: 4 }], id: 'a"\\\n' }
  expect(await read(JSON.stringify(answer, undefined, 1))).toEqual({ usage: answer.usage, id: answer.id })
  for (const value of [1.5, null, true, '', [], {}, [[1]], 'é']) {
    expect(await read(JSON.stringify({ id: value, z: 1 }))).toEqual({ id: value })
  }
})

test('property: as JSON.parse sees them', async () => {
  const object = fc.dictionary(fc.constantFrom('id', 'usage', 'a', 'b'), fc.jsonValue({ maxDepth: 4 }))
  await fc.assert(
    fc.asyncProperty(object, async (value) => {
      const text = JSON.stringify(value)
      const expected = Object.entries(JSON.parse(text)).filter(([name]) => name === 'id' || name === 'usage')
      expect(await read(text)).toEqual(Object.fromEntries(expected))
    }),
  )
})

test('ids of the items of one list, and of no other', async () => {
  const items = [
    { type: 'x', id: 'a' },
    { id: 7 },
    { deep: { id: 'no' } },
    'b',
    { id: 'é\\"' },
    [{ id: 'no' }],
    {},
  ]
  const answer = { id: 'r', input: items, output: items, after: items, usage: { id: 'no' } }
  const read = (idsOf?: string) =>
    readFields(Buffer.from(JSON.stringify(answer)), {
      names: new Set(['id']),
      signal,
      ...(idsOf === undefined ? {} : { idsOf }),
    })
  expect(await read('output')).toMatchObject({ found: { id: 'r' }, ids: ['a', 'é\\"'] })
  expect(await read()).toMatchObject({ ids: [] })
  const many = JSON.stringify({ output: Array.from({ length: 2000 }, (_, at) => ({ id: `${at}` })) })
  expect(
    (await readFields(Buffer.from(many), { names: new Set(), idsOf: 'output', signal })).ids,
  ).toHaveLength(1024)
})

test('SB-27 what is no JSON object, and nesting over 64, is refused', async () => {
  for (const text of [
    '',
    '[]',
    '1',
    '"x"',
    'null',
    '{',
    '{"a":}',
    '{}{}',
    '{"a":1,"a":2}',
    `{"a":${'['.repeat(64)}1`,
  ]) {
    await expect(read(text)).rejects.toMatchObject({ reason: 'upstream_invalid' })
  }
})

test('issue 4: a large answer does not hold up the host, and the call can end meanwhile', async () => {
  const text = JSON.stringify({ a: Array.from({ length: 600_000 }, (_, n) => [n]), usage: { n: 1 } })
  const control = new AbortController()
  const reading = readFields(Buffer.from(text), { names: new Set(['usage']), signal: control.signal })
  setImmediate(() => control.abort(new TypeError('over')))
  await expect(reading).rejects.toThrow('over')
  expect(await read(text)).toEqual({ usage: { n: 1 } })
})
