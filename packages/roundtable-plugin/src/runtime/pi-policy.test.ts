import { expect, test } from 'vitest'
import { compactionTimeoutMs, type PiPolicyOptions, resolvePiPolicy } from './pi-policy.ts'

const offer = { mcp: ['docs', 'tickets'], tools: ['clock', 'post'] }
const options = (more: object = {}): PiPolicyOptions => ({ model: 'm', profiles: { default: {} }, ...more })

test('a profile has what the runtime has, unless it says less', () => {
  const policy = resolvePiPolicy(
    options({
      prompt: 'be kind',
      profiles: { all: {}, few: { model: 'n', prompt: 'be brief', mcp: ['docs'], tools: [] } },
    }),
    offer,
  )
  expect(policy.profile('all')).toEqual({ name: 'all', model: 'm', prompt: 'be kind', ...offer })
  expect(policy.profile('few')).toEqual({
    name: 'few',
    model: 'n',
    prompt: 'be brief',
    mcp: ['docs'],
    tools: [],
  })
  expect(policy).toMatchObject({ turnTimeoutMs: 600_000, startTimeoutMs: 90_000, timeZone: 'UTC' })
})

test.each(['nobody', 'constructor', '__proto__', 'toString', ''])(
  'PR-06 an unknown profile is refused, own properties only: %s',
  (name) => {
    const policy = resolvePiPolicy(options(), offer)
    expect(() => policy.profile(name)).toThrow(/no profile of that name. Known are: default/)
  },
)

test.each<[string, object, RegExp]>([
  [
    'PR-06 a server that is not there',
    { profiles: { p: { mcp: ['mail'] } } },
    /profiles\.p\.mcp: "mail" is not/,
  ],
  [
    'a tool that is not there',
    { profiles: { p: { tools: ['rm'] } } },
    /profiles\.p\.tools: "rm" is not among/,
  ],
  ['PD-05 a name', { profiles: { 'a b': {} } }, /profiles: have names/],
  ['no profile', { profiles: {} }, /at least one/],
  ['no profiles', { profiles: undefined }, /profiles: must be/],
  ['a list', { profiles: { p: { mcp: 'docs' } } }, /must be a list/],
  ['PR-02 a short turn', { turnTimeoutMs: 999 }, /turnTimeoutMs/],
  ['PR-02 a long turn', { turnTimeoutMs: 600_001 }, /turnTimeoutMs/],
  ['PR-02 a long start', { startTimeoutMs: 600_001 }, /startTimeoutMs/],
  ['PR-02 half a millisecond', { startTimeoutMs: 1000.5 }, /startTimeoutMs/],
  ['PD-05 a time zone', { timeZone: 'Mars/Olympus' }, /timeZone/],
  ['a model', { profiles: { p: { model: ' ' } } }, /profiles\.p: model/],
  ['a prompt', { profiles: { p: { prompt: 'x'.repeat(100_001) } } }, /profiles\.p: prompt/],
])('refused at construction: %s', (_, more, message) => {
  expect(() => resolvePiPolicy(options(more), offer)).toThrow(message)
})

test('CP-02 the compactor gets a third of a turn, at most two minutes; more than half is refused', () => {
  expect(compactionTimeoutMs(600_000)).toBe(120_000)
  expect(compactionTimeoutMs(90_000)).toBe(30_000)
  expect(compactionTimeoutMs(2_000)).toBe(1_000)
  expect(compactionTimeoutMs(10_000, 5_000)).toBe(5_000)
  expect(() => compactionTimeoutMs(10_000, 5_001)).toThrow(/at most half of turnTimeoutMs \(5000\)/)
})
