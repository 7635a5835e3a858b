import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FieldRule, ObjectRule, RequestHost, RequestTable } from './request-table.ts'
import { rewriteRequest } from './rewrite-request.ts'
import { listOf, objectOf } from './table-parts.ts'

const host: RequestHost = { model: 'host-model', maxOutputTokens: 100 }

function tableOf(fields: Record<string, FieldRule>, rest: Omit<ObjectRule, 'fields'> = {}): RequestTable {
  return { family: 'test', body: objectOf(fields, rest).object }
}

async function rewrite(text: string, table: RequestTable, with_: RequestHost = host) {
  const bytes = new Uint8Array(Buffer.from(text))
  const result = await rewriteRequest({ bytes, table, host: with_ })
  return result.ok
    ? { ...result, same: result.bytes === bytes, text: Buffer.from(result.bytes).toString() }
    : result
}

async function accepted(text: string, table: RequestTable, with_?: RequestHost) {
  const result = await rewrite(text, table, with_)
  if (!result.ok) throw new TypeError(`${result.path}: ${result.problem}`)
  return result
}

async function refusal(text: string, table: RequestTable, with_?: RequestHost): Promise<string> {
  const result = await rewrite(text, table, with_)
  return result.ok ? 'accepted' : `${result.path}: ${result.problem}`
}

const raw = fc.constantFrom(
  '1',
  '12345678901234567890',
  '1.0e+2',
  '"\\u00e9\\/<&>"',
  '"\\ud800"',
  'null',
  'true',
  '{"10":1,"2":[ ],"a":{"b" : 0}}',
  '[1, 2 ,{"model":"x"}]',
  '"é😀"',
)
const space = fc.stringMatching(/^[ \n]{0,2}$/)
const name = fc.constantFrom('keep', 'other', 'drop', 'model', 'list', 'unknown', 'limit')

interface Field {
  readonly name: string
  readonly raw: string
  readonly gaps: readonly string[]
}

const fieldsOf = (values: fc.Arbitrary<string>) =>
  fc.uniqueArray(fc.record({ name, raw: values, gaps: fc.array(space, { minLength: 4, maxLength: 4 }) }), {
    selector: (field: Field) => field.name,
    maxLength: 6,
  })
const item = fieldsOf(raw)
const body = fieldsOf(raw).chain((fields) =>
  fc
    .array(item, { maxLength: 3 })
    .map((items) =>
      fields.map((field) =>
        field.name === 'list' ? { ...field, raw: `[${items.map(textOf).join(' , ')}]` } : field,
      ),
    ),
)

function textOf(fields: readonly Field[]): string {
  return `{${fields.map((f) => `${f.gaps[0]}"${f.name}"${f.gaps[1]}:${f.gaps[2]}${f.raw}${f.gaps[3]}`).join(',')}}`
}

const nested = { keep: 'keep', other: 'keep', drop: 'drop' } as const
const table = tableOf({
  ...nested,
  model: { set: 'model' },
  limit: { cap: 'maxOutputTokens' },
  list: listOf(objectOf(nested), 10),
})

/** What the table above means, on values. */
function meant(value: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(value).filter(([key]) => !['drop', 'unknown'].includes(key))
  return Object.fromEntries(kept.map(([key, one]) => [key, meantField(key, one)]))
}

function meantField(key: string, value: unknown): unknown {
  if (key === 'model') return 'host-model'
  if (key === 'limit') return Number.isSafeInteger(value) && Number(value) <= 100 ? value : 100
  if (key !== 'list') return value
  return (value as Record<string, unknown>[]).map((one) =>
    Object.fromEntries(Object.entries(one).filter(([name]) => name === 'keep' || name === 'other')),
  )
}

describe('T45 the rewriter', () => {
  it('T45 property, 1,500 bodies: the result means what the table says, and what is kept keeps its bytes', async () => {
    await fc.assert(
      fc.asyncProperty(body, async (fields) => {
        const text = textOf(fields)
        const result = await accepted(text, table)
        expect(JSON.parse(result.text)).toEqual(meant(JSON.parse(text)))
        // In order, byte for byte, between what was cut.
        let at = 0
        for (const { name: key, gaps, raw: value } of fields.filter((f) =>
          ['keep', 'other'].includes(f.name),
        )) {
          const part = `"${key}"${gaps[1]}:${gaps[2]}${value}`
          const found = result.text.indexOf(part, at)
          expect(found).toBeGreaterThanOrEqual(at)
          at = found + part.length
        }
        const parsed = JSON.parse(text)
        const changes = JSON.stringify(meant(parsed)) !== JSON.stringify(parsed)
        if (result.same) expect(changes).toBe(false)
        else expect(result.dropped.length > 0).toBe(true)
      }),
      { numRuns: 1500 },
    )
  })

  it('T45 W-31 property, 1,500 bodies: in memory that is given away it writes the same, wherever that fits', async () => {
    let within = 0
    await fc.assert(
      fc.asyncProperty(body, fc.nat(40), async (fields, spare) => {
        const text = textOf(fields)
        const room = new Uint8Array(Buffer.byteLength(text) + spare)
        const bytes = room.subarray(0, room.length - spare)
        bytes.set(Buffer.from(text))
        const result = await rewriteRequest({ bytes, table, host, reuse: true })
        if (!result.ok) throw new TypeError(result.problem)
        expect(Buffer.from(result.bytes).toString()).toBe((await accepted(text, table)).text)
        const fits = result.bytes.length <= room.length
        expect(result.bytes.buffer === room.buffer).toBe(fits)
        if (fits && result.bytes !== bytes) within += 1
      }),
      { numRuns: 1500 },
    )
    expect(within).toBeGreaterThan(200)
  })

  it('T45 W-31 property: so it does when spans move both ways, over each other', async () => {
    const names = ['set1', 'set2', 'set3', 'set4', 'drop1', 'drop2', 'keep1', 'keep2']
    const mixed = tableOf(
      Object.fromEntries(
        names.map((name): [string, FieldRule] => [
          name,
          name.startsWith('set') ? { set: 'model' } : name.startsWith('drop') ? 'drop' : 'keep',
        ]),
      ),
    )
    const value = fc.oneof(fc.integer(), fc.string({ maxLength: 30 }))
    const chosen = fc
      .shuffledSubarray(names)
      .chain((list) => fc.tuple(...list.map((name) => fc.tuple(fc.constant(name), value))))
    await fc.assert(
      fc.asyncProperty(chosen, async (fields) => {
        const text = JSON.stringify(Object.fromEntries(fields))
        const room = new Uint8Array(Buffer.byteLength(text) + 100)
        const bytes = room.subarray(0, room.length - 100)
        bytes.set(Buffer.from(text))
        const result = await rewriteRequest({ bytes, table: mixed, host, reuse: true })
        if (!result.ok) throw new TypeError(result.problem)
        expect(Buffer.from(result.bytes).toString()).toBe((await accepted(text, mixed)).text)
      }),
      { numRuns: 1000 },
    )
  })

  it('T45 a small body whose memory is shared with others is not written over, and comes out whole', async () => {
    const text = '{"model":"guest","keep":1.0,"other":"as it was"}'
    for (let round = 0; round < 200; round += 1) {
      const bytes = Buffer.from(text)
      const result = await rewriteRequest({ bytes, table, host })
      if (!result.ok) throw new TypeError(result.problem)
      expect(Buffer.from(result.bytes).toString()).toBe(text.replace('guest', 'host-model'))
      expect(bytes.toString()).toBe(text)
    }
  })

  it('T45 with nothing to edit the very same bytes go on', async () => {
    const text =
      ' { "keep" : 12345678901234567890 , "model":"host-model","limit": 1e2,"other":{"10":1,"2":"\\u003c"} } '
    const result = await accepted(text, table)
    expect(result).toMatchObject({ same: true, text, dropped: [] })
  })

  it('T45 with one edit only its span changes', async () => {
    const around = ['{"keep":1.0, "other" : "\\u00e9\\/" ,"model" : ', ' ,"list":[]}']
    const result = await accepted(around.join('"guest"'), table)
    expect(result.text).toBe(around.join('"host-model"'))
    expect(result.dropped).toEqual(['model'])
  })

  it.each([
    ['{"unknown":1}', '{}'],
    ['{ "unknown" : 1 , "drop" : 2 }', '{  }'],
    ['{"unknown":1,"keep":2}', '{"keep":2}'],
    ['{"keep":2,"unknown":1}', '{"keep":2}'],
    ['{"keep":1,"unknown":{"keep":[1]},"other":2}', '{"keep":1,"other":2}'],
    ['{"drop":0,"unknown":1,"keep":2,"drop2":3,"drop3":4,"other":5,"drop4":6}', '{"keep":2,"other":5}'],
    ['{"list":[{"unknown":1},{"drop":[{}],"keep":1}]}', '{"list":[{},{"keep":1}]}'],
    ['{"unknown":{"list":[{"drop":1}]}}', '{}'],
  ])('a field goes with one comma: %s', async (text, left) => {
    expect((await accepted(text, table)).text).toBe(left)
  })

  it.each([
    ['{}', '{"added":[1],"model":"m"}'],
    ['{ "unknown":1 }', '{ "added":[1],"model":"m" }'],
    ['{"keep":1}', '{"keep":1,"added":[1],"model":"m"}'],
    ['{"keep":1,\n "unknown":2\n}', '{"keep":1,"added":[1],"model":"m"\n}'],
    ['{"model":"guest","keep":1,"added":0}', '{"model":"m","keep":1,"added":[1]}'],
  ])('what the operator sets is written over or added: %s', async (text, wanted) => {
    const result = await accepted(text, table, { ...host, setFields: { added: [1], model: 'm' } })
    expect(JSON.parse(result.text)).toEqual(JSON.parse(wanted))
    if (!text.includes('"added"')) expect(result.text).toBe(wanted)
  })

  const long = `1.${'0'.repeat(5000)}`

  it.each([
    long,
    `${long}e9`,
    '0',
    '-1',
    '101',
    '1e9',
    '1.5',
    'null',
    '"7"',
    '{}',
    '[1]',
    '99999999999999999999',
    'true',
  ])('T43 a limit of %s becomes the cap', async (value) => {
    const result = await accepted(`{"limit":${value},"keep":1}`, table)
    expect(result.text).toBe('{"limit":100,"keep":1}')
    expect(result.dropped).toEqual(['limit'])
  })

  it.each(['1', '100', '1e2', '7.0'])('T43 a limit of %s stays as it is', async (value) => {
    expect((await accepted(`{"limit":${value}}`, table)).same).toBe(true)
  })
})

describe('decision 12 what is dropped is named', () => {
  it('decision 12 with dotted names, each once', async () => {
    const result = await accepted('{"a":1,"list":[{"x":1},{"x":2,"drop":3}],"drop":{"deep":1}}', table)
    expect(result.dropped).toEqual(['a', 'list[].x', 'list[].drop', 'drop'])
  })

  it('decision 12 the list is bounded and its names are clean', async () => {
    const names = Array.from({ length: 100 }, (_, i) => `"${i}<\\n>${'x'.repeat(200)}":1`)
    const { dropped } = await accepted(`{${names.join()}}`, table)
    expect(dropped).toHaveLength(32)
    for (const name of dropped) expect(name).toMatch(/^\d+\?\?\?x{50,62}$/)
  })

  it('decision 12 the operator lets fields pass by name, at their place only', async () => {
    const allowFields = new Set(['list[].x', 'drop', 'soft'])
    const soft = tableOf({
      drop: 'drop',
      soft: { null: true, otherwise: 'drop' },
      list: listOf(objectOf({}), 3),
    })
    const text = '{"drop":{"a":[1]},"x":1,"soft":[{"b":2}],"list":[{"x":1,"y":2}]}'
    const result = await accepted(text, soft, { ...host, allowFields })
    expect(result.text).toBe('{"drop":{"a":[1]},"soft":[{"b":2}],"list":[{"x":1}]}')
    expect(result.dropped).toEqual(['x', 'list[].y'])
  })

  it('names of Object.prototype are names like others', async () => {
    const text = '{"__proto__":{"keep":1},"constructor":1,"toString":2,"keep":3}'
    expect((await accepted(text, table)).text).toBe('{"keep":3}')
  })
})

describe('checks of values', () => {
  const checked = tableOf({
    flag: { boolean: [false] },
    number: { number: { min: 0, max: 2, integer: true } },
    word: { string: { oneOf: ['a', 'é'], maxBytes: 12 }, null: true },
    name: { string: { pattern: /^[a-z]+$/ } },
    url: { string: { start: /^data:/i } },
    id: { string: { owned: true } },
    soft: { string: true, otherwise: 'drop' },
    list: listOf({ string: true, number: true, array: { items: 'keep', max: 1 } }, 2),
    none: {},
  })
  const owner = { ...host, ownsId: (id: string) => id === 'mine' }

  it.each([
    [
      '{"flag":false,"number":2,"word":"a","name":"ab","url":"DATA:x","id":"mine","soft":"x","list":["",[{}]]}',
    ],
    ['{"word":"\\u00e9"}'],
    ['{"word":null}'],
    ['{"url":"\\u0064ata\\u003aimage\\/png"}'],
    ['{"id":"\\u006dine"}'],
  ])('passes: %s', async (text) => {
    expect((await accepted(text, checked, owner)).same).toBe(true)
  })

  it.each([
    ['{"flag":true}', 'flag: is not false'],
    ['{"flag":0}', 'flag: is not a boolean'],
    ['{"number":3}', 'number: is not between 0 and 2'],
    ['{"number":1e999}', 'number: is not between 0 and 2'],
    [`{"number":1.${'0'.repeat(5000)}e9}`, 'number: is not between 0 and 2'],
    ['{"number":0.5}', 'number: is not a whole number'],
    ['{"word":"b"}', 'word: is none of a, é'],
    ['{"word":"aaaaaaaaaaaaa"}', 'word: is longer than 12 bytes'],
    ['{"word":1}', 'word: is not a string or null'],
    ['{"name":"A"}', 'name: does not match ^[a-z]+$'],
    [`{"name":"${'a'.repeat(5000)}"}`, 'name: does not match ^[a-z]+$'],
    ['{"url":"https://data:"}', 'url: does not start as ^data:'],
    ['{"url":" data:"}', 'url: does not start as ^data:'],
    ['{"id":"theirs"}', 'id: names something that this conversation did not create'],
    ['{"list":["",{}]}', 'list[1]: is not a string or a number or an array'],
    ['{"list":["","",""]}', 'list[2]: is beyond the 2 entries that are allowed'],
    ['{"list":{}}', 'list: is not an array'],
    ['{"none":null}', 'none: is not allowed'],
    ['[]', ': is not an object'],
    ['"x"', ': is not an object'],
    ['{"list":[[1,2]]}', 'list[0][1]: is beyond the 1 entries that are allowed'],
    ['{"x\\n<y>":{"a":1,"a":2}}', 'x??y?: a field is there twice'],
  ])('refuses %s', async (text, problem) => {
    expect(await refusal(text, checked, owner)).toBe(problem)
  })

  it('without an owner no id passes', async () => {
    expect(await refusal('{"id":"mine"}', checked)).toMatch(/^id: names something/)
  })

  it('a soft field of a wrong type is dropped, whatever is in it', async () => {
    const result = await accepted('{"soft":{"a":[{}]},"word":"a"}', checked)
    expect(result).toMatchObject({ text: '{"word":"a"}', dropped: ['soft'] })
  })
})

describe('kinds of one object', () => {
  const kinds = tableOf({
    list: listOf(
      objectOf(
        { type: { string: true }, a: 'keep', b: 'keep', id: 'keep' },
        {
          required: ['id'],
          variants: {
            by: 'type',
            missing: 'A',
            of: { A: { required: ['a'], optional: ['id'] }, B: { required: ['b'], optional: ['id'] } },
          },
        },
      ),
      9,
    ),
  })

  it.each([
    ['{"type":"A","a":1,"id":1}', '{"type":"A","a":1,"id":1}'],
    ['{"b":1,"id":2,"type":"B"}', '{"b":1,"id":2,"type":"B"}'],
    ['{"id":2,"a":1}', '{"id":2,"a":1}'],
    ['{"a":0,"b":1,"id":2,"type":"\\u0042"}', '{"b":1,"id":2,"type":"\\u0042"}'],
  ])('whatever the order of its fields: %s', async (text, left) => {
    expect((await accepted(`{"list":[${text}]}`, kinds)).text).toBe(`{"list":[${left}]}`)
  })

  it.each([
    ['{"type":"A","b":1,"id":1}', 'list[0].a: is missing'],
    ['{"type":"B","b":1}', 'list[0].id: is missing'],
    ['{"type":"C","b":1,"id":1}', 'list[0].type: is none of A, B'],
    ['{"type":"constructor","b":1,"id":1}', 'list[0].type: is none of A, B'],
  ])('refuses %s', async (text, problem) => {
    expect(await refusal(`{"list":[${text}]}`, kinds)).toBe(problem)
  })

  it('a field that the operator allows stays with every kind', async () => {
    const text = '{"list":[{"type":"A","a":1,"id":1,"extra":[2]}]}'
    const result = await accepted(text, kinds, { ...host, allowFields: new Set(['list[].extra']) })
    expect(result.same).toBe(true)
  })
})

describe('a check of the whole object', () => {
  it('sees a field as it stands, what was cut and written in it included, and can write over it', async () => {
    const seen: unknown[] = []
    const table = tableOf(
      {
        inner: objectOf({ keep: 'keep', drop: 'drop', model: { set: 'model' } }),
        other: 'keep',
        gone: 'drop',
      },
      {
        close: (object) => {
          for (const name of ['inner', 'other', 'gone', 'missing']) seen.push(object.value(name))
          object.set('inner', { seen: true })
        },
      },
    )
    const sent = '{"inner":{"keep":[1,"é"],"drop":2,"model":"x"},"other":[null],"gone":1}'
    expect((await accepted(sent, table)).text).toBe('{"inner":{"seen":true},"other":[null]}')
    expect(seen).toEqual([{ keep: [1, 'é'], model: 'host-model' }, [null], undefined, undefined])
  })
  it('does not build what is large', async () => {
    const seen: unknown[] = []
    const table = tableOf({ a: 'keep' }, { close: (object) => void seen.push(object.value('a')) })
    await accepted(`{"a":"${'x'.repeat(65_534)}"}`, table)
    await accepted(`{"a":"${'x'.repeat(65_535)}"}`, table)
    expect(seen).toEqual(['x'.repeat(65_534), undefined])
  })
})

describe('large bodies', () => {
  const text = `{"keep":"${'x'.repeat(8 << 20)}","other":[${'{"a":[1,2]},'.repeat(700_000)}0],"drop":1}`

  it('decision 11 others run while a body of 16 MiB is read and written', async () => {
    let turns = 0
    let running = true
    const count = () => {
      if (!running) return
      turns++
      setImmediate(count)
    }
    setImmediate(count)
    const result = await accepted(text, table)
    running = false
    expect(turns).toBeGreaterThan(2)
    expect(result.text).toBe(text.replace(',"drop":1', ''))
  })

  it('a signal ends it, before and while it runs', async () => {
    const bytes = new Uint8Array(Buffer.from(text))
    const abort = new AbortController()
    setImmediate(() => abort.abort(new TypeError('enough')))
    await expect(rewriteRequest({ bytes, table, host, signal: abort.signal })).rejects.toThrow('enough')
    await expect(rewriteRequest({ bytes, table, host, signal: abort.signal })).rejects.toThrow('enough')
  })

  it('a body with too much to cut is refused', async () => {
    const items = '{"keep":1,"x":1},'.repeat(70_000)
    const many = tableOf({ list: listOf(objectOf(nested), 100_000) })
    expect(await refusal(`{"list":[${items}{}]}`, many)).toMatch(/too many fields that are not allowed$/)
  })
})
