import { describe, expect, test } from 'vitest'
import type { Receipt } from '../wire.ts'
import { roadOf } from './road.ts'
import { turnsAsCsv, turnsAsJson } from './turn-export.ts'
import { filterTurns } from './turn-filter.ts'
import { usageBy, usageOfAll, usageSeries } from './usage.ts'
import { count, duration, money, reasonWords } from './words.ts'

let turns = 0

function receipt(more: Partial<Receipt> = {}): Receipt {
  turns += 1
  return {
    turnId: `t${turns}`,
    channel: 'demo:a',
    speaker: { id: 'u-ann', name: 'Ann' },
    at: '2026-01-01T10:00:00.000Z',
    driver: 'docker',
    state: 'settled',
    steps: [],
    durationMs: 100,
    ok: true,
    payments: [],
    calls: [],
    modelCalls: 0,
    toolCalls: [],
    refusals: {},
    tokens: { input: 0, output: 0 },
    cost: 0,
    ...more,
  }
}

const call = {
  callId: 'c',
  route: 'model',
  status: 200,
  reason: 'ok',
  upstreamStatus: 200,
  durationMs: 12,
  model: 'm',
} as const
const states = (one: Receipt) => roadOf(one).map(({ state }) => state)

describe('the road of a turn', () => {
  test('goes stage by stage', () => {
    const { ok: _, ...fresh } = receipt({ state: 'admitted' })
    expect(states(fresh)).toEqual(['done', 'now', 'todo', 'todo', 'todo', 'todo'])
    const bound = { ...fresh, state: 'bound', workerId: 'aabbccddeeff', warm: true } as const
    expect(states(bound)).toEqual(['done', 'done', 'now', 'todo', 'todo', 'todo'])
    const chosen = { ...bound, state: 'answering', key: { outcome: 'ok', fingerprint: 'f1' } } as const
    expect(states(chosen)).toEqual(['done', 'done', 'done', 'done', 'now', 'todo'])
    const answered = { ...chosen, calls: [call], modelCalls: 1, state: 'settling' } as const
    expect(states(answered)).toEqual(['done', 'done', 'done', 'done', 'done', 'now'])
    expect(states({ ...answered, state: 'settled', ok: true })).toEqual(Array(6).fill('done'))
  })

  test('a missing key stops it before the provider', () => {
    const road = roadOf(
      receipt({
        ok: false,
        category: 'credential',
        workerId: 'w',
        modelCalls: 1,
        refusals: { credential_missing: 1 },
      }),
    )
    expect(road.map(({ state }) => state)).toEqual(['done', 'done', 'done', 'refused', 'todo', 'refused'])
    expect(road[3]?.detail).toBe('no key')
    expect(road[4]?.detail).toBe('saw nothing')
  })

  test('a worker that never came, and an answer that was held back', () => {
    expect(states(receipt({ ok: false, category: 'container' }))).toEqual([
      'done',
      'refused',
      'todo',
      'todo',
      'todo',
      'refused',
    ])
    const held = receipt({
      ok: false,
      category: 'broker',
      workerId: 'w',
      modelCalls: 1,
      refusals: { reflection: 2 },
    })
    expect(roadOf(held)[4]).toMatchObject({ state: 'refused', detail: expect.stringContaining('× 2') })
  })
})

describe('search and filter', () => {
  const all = [
    receipt({ payments: [{ fingerprint: 'aa11', rule: 'channel demo:a', calls: 1 }] }),
    receipt({ channel: 'demo:b', ok: false, category: 'credential', refusals: { credential_missing: 1 } }),
    receipt({ channel: 'demo:b', ok: false, category: 'stopped', speaker: { id: 'u-ben', name: 'Ben' } }),
  ]
  const ids = (filter: Partial<Parameters<typeof filterTurns>[1]>) =>
    filterTurns(all, { words: '', channel: '', outcome: '', ...filter }).map(({ turnId }) => turnId)

  test('newest first, by channel, outcome, and words that are all found', () => {
    const [first, second, third] = all.map(({ turnId }) => turnId)
    expect(ids({})).toEqual([third, second, first])
    expect(ids({ channel: 'demo:b' })).toEqual([third, second])
    expect(ids({ outcome: 'refused' })).toEqual([second])
    expect(ids({ words: 'AA11' })).toEqual([first])
    expect(ids({ words: 'no key' })).toEqual([second])
    expect(ids({ words: 'ben demo:b' })).toEqual([third])
    expect(ids({ words: 'ben demo:a' })).toEqual([])
  })
})

describe('export', () => {
  test.each(['=cmd|"/c calc"!A1', '+1', '-1', '@sum(A1)', '\t=1', ' \n =1', '\u200b=1', '\uff1d1', '\rx'])(
    'a cell of CSV is no formula: %j',
    (name) => {
      const csv = turnsAsCsv([receipt({ speaker: { id: 'u', name } })])
      expect(csv).toContain(`"'${name.replaceAll('"', '""')}"`)
    },
  )

  test('quotes, commas and lines stay in their cell', () => {
    const csv = turnsAsCsv([receipt({ cause: 'a "b", c\nd', ok: false })])
    expect(csv).toContain('"a ""b"", c\nd"')
    expect(csv.split('\r\n')).toHaveLength(3)
  })

  test('JSON has all that is known', () => {
    const one = receipt({ calls: [call] })
    expect(JSON.parse(turnsAsJson([one]))).toEqual({ turns: [one] })
  })
})

describe('usage', () => {
  const all = [
    receipt({ tokens: { input: 10, output: 5 }, cost: 1, durationMs: 10 }),
    receipt({ channel: 'demo:b', tokens: { input: 1, output: 1 }, cost: null, durationMs: 30 }),
    receipt({ tokens: { input: 20, output: 5 }, cost: 2, durationMs: 20 }),
  ]

  test('adds up, and an unknown cost makes the sum unknown', () => {
    expect(usageBy(all, 'channel')).toMatchObject([
      { group: 'demo:a', turns: 2, input: 30, output: 10, cost: 3, slowestMs: 20 },
      { group: 'demo:b', turns: 1, input: 1, output: 1, cost: null },
    ])
    expect(usageOfAll(all)).toMatchObject({ turns: 3, cost: null, medianMs: 20 })
  })

  test('speakers of one name stay apart', () => {
    const two = ['u-1', 'u-2'].map((id) => receipt({ speaker: { id, name: 'Ann' } }))
    expect(usageBy(two, 'speaker').map(({ group }) => group)).toEqual(['Ann (u-1)', 'Ann (u-2)'])
  })

  test('charts have a figure of each group along the turns', () => {
    expect(usageSeries(all, 'channel')).toEqual({
      groups: ['demo:a', 'demo:b'],
      turns: [0, 1, 2, 3],
      tokens: [
        [0, 15, 15, 40],
        [0, 0, 2, 2],
      ],
      cost: [
        [0, 1, 1, 3],
        [0, 0, null, 0],
      ],
      durationMs: [
        [null, 10, null, 20],
        [null, null, 30, null],
      ],
    })
  })

  test('the same by speaker, wherever they speak: a refused turn took its time and no token', () => {
    const ben = { id: 'u-ben', name: 'Ben' }
    const some = [
      receipt({ tokens: { input: 10, output: 5 }, cost: 1, durationMs: 10 }),
      receipt({ speaker: ben, tokens: { input: 3, output: 4 }, cost: 0.5, durationMs: 50 }),
      receipt({ channel: 'demo:b', tokens: { input: 7, output: 1 }, cost: 2, durationMs: 40 }),
      receipt({
        channel: 'demo:b',
        speaker: ben,
        ok: false,
        category: 'credential',
        refusals: { credential_missing: 1 },
        durationMs: 20,
      }),
    ]
    expect(usageSeries(some, 'speaker')).toEqual({
      groups: ['Ann (u-ann)', 'Ben (u-ben)'],
      turns: [0, 1, 2, 3, 4],
      tokens: [
        [0, 15, 15, 23, 23],
        [0, 0, 7, 7, 7],
      ],
      cost: [
        [0, 1, 1, 3, 3],
        [0, 0, 0.5, 0.5, 0.5],
      ],
      durationMs: [
        [null, 10, null, 40, null],
        [null, null, 50, null, 20],
      ],
    })
    expect(usageBy(some, 'speaker')).toEqual([
      {
        group: 'Ann (u-ann)',
        turns: 2,
        refused: 0,
        input: 17,
        output: 6,
        cost: 3,
        medianMs: 40,
        slowestMs: 40,
      },
      {
        group: 'Ben (u-ben)',
        turns: 2,
        refused: 1,
        input: 3,
        output: 4,
        cost: 0.5,
        medianMs: 50,
        slowestMs: 50,
      },
    ])
  })
})

test('words and figures', () => {
  expect([duration(0.4), duration(1_500), duration(61_000)]).toEqual(['0 ms', '1.5 s', '1 min 1 s'])
  expect([money(null, 'USD'), money(0.00488, 'USD'), money(1.5, 'EUR')]).toEqual(['–', '$0.0049', '€1.50'])
  expect([count(1, 'call'), count(2_000, 'call')]).toEqual(['1 call', '2,000 calls'])
  expect([
    reasonWords('credential_missing'),
    reasonWords('some_new_one'),
    reasonWords('constructor'),
  ]).toEqual(['no key', 'some new one', 'constructor'])
})
