import { expect, test } from 'vitest'
import { AdmissionLimits, type AdmissionOptions, type Admitted } from './admission-limits.ts'

/** Limits on a clock of the test's own; both speakers and channels have room unless it says otherwise. */
function limits(options: AdmissionOptions = {}) {
  let now = 0
  const it = new AdmissionLimits(
    {
      perSpeakerMinute: 100,
      perChannelMinute: 100,
      waitingPerSpeaker: 100,
      waitingPerChannel: 100,
      ...options,
    },
    () => now,
  )
  const ask = (speaker = 'u-ann', channel: `fake:${string}` = 'fake:1') => it.admit(channel, speaker)
  const reason = (admitted: Admitted) => (admitted.ok ? 'ok' : admitted.reason)
  return {
    ask,
    pass(ms: number) {
      now += ms
    },
    outcome: (speaker?: string, channel?: `fake:${string}`) => reason(ask(speaker, channel)),
  }
}

test('one speaker cannot fill a channel’s queue: others are still taken', () => {
  const { ask, outcome } = limits({ waitingPerSpeaker: 2 })
  const first = ask()
  expect([first.ok, outcome(), outcome(), outcome('u-bob'), outcome('u-ann', 'fake:2')]).toEqual([
    true,
    'ok',
    'waitingPerSpeaker',
    'ok',
    'ok',
  ])
  if (first.ok) first.done()
  if (first.ok) first.done()
  expect([outcome(), outcome()]).toEqual(['ok', 'waitingPerSpeaker'])
})

test('a channel’s queue has an end for all of its speakers together', () => {
  const { outcome } = limits({ waitingPerChannel: 2 })
  expect([outcome('a'), outcome('b'), outcome('c'), outcome('c', 'fake:2')]).toEqual([
    'ok',
    'ok',
    'waitingPerChannel',
    'ok',
  ])
})

test.each<[keyof AdmissionOptions, string]>([
  ['perSpeakerMinute', 'u-ann'],
  ['perChannelMinute', 'u-other'],
])('%s counts the messages of the last minute', (option, next) => {
  const { outcome, pass } = limits({ [option]: 2 })
  expect([outcome(), outcome(), outcome(next)]).toEqual(['ok', 'ok', option])
  pass(59_999)
  expect(outcome(next)).toBe(option)
  pass(1)
  expect([outcome(next), outcome(next), outcome(next)]).toEqual(['ok', 'ok', option])
})

test('a message that is refused is not counted', () => {
  const { outcome, pass } = limits({ perSpeakerMinute: 1 })
  expect([outcome(), outcome()]).toEqual(['ok', 'perSpeakerMinute'])
  pass(30_000)
  outcome()
  pass(30_000)
  expect(outcome()).toBe('ok')
})

test('who is refused is told why and for how long, once a minute', () => {
  const { ask, pass } = limits({ perSpeakerMinute: 1 })
  ask()
  pass(20_000)
  expect(ask()).toMatchObject({ ok: false, words: expect.stringContaining('in 40 s') })
  expect(ask()).not.toHaveProperty('words')
  expect(ask('u-bob').ok).toBe(true)
  expect(ask('u-bob')).toMatchObject({ ok: false, words: expect.any(String) })
})

test('that a channel has had enough is said in it once a minute, however many strangers write', () => {
  for (const options of [{ waitingPerChannel: 1 }, { perChannelMinute: 1 }]) {
    const { ask, pass } = limits(options)
    ask()
    const told = () => Array.from({ length: 1_000 }, (_, n) => ask(`u-${n}`)).filter((one) => 'words' in one)
    expect([told().length, told().length]).toEqual([1, 0])
    pass(59_999)
    expect(told().length).toBe(0)
  }
})

test('a message that its host never runs counts for half a day, and not for ever', () => {
  const { outcome, pass } = limits({ waitingPerSpeaker: 1 })
  const half = 12 * 60 * 60_000
  expect(outcome()).toBe('ok')
  pass(half - 1)
  expect(outcome()).toBe('waitingPerSpeaker')
  pass(1)
  expect([outcome(), outcome()]).toEqual(['ok', 'waitingPerSpeaker'])
})

test.each<[AdmissionOptions, string]>([
  [{ waitingPerSpeaker: 1 }, 'wait for an answer first'],
  [{ waitingPerChannel: 1 }, 'in this channel'],
  [{ perChannelMinute: 1 }, 'in 60 s'],
])('the words of %j', (options, words) => {
  const { ask } = limits(options)
  ask()
  expect(ask()).toMatchObject({ words: expect.stringContaining(words) })
})

test('names of speakers and channels cannot be mistaken for one another', () => {
  const { outcome } = limits({ perSpeakerMinute: 1 })
  expect([outcome('b","c', 'fake:a'), outcome('c', 'fake:a","b')]).toEqual(['ok', 'ok'])
})

test('speakers who have gone are forgotten, those who wait are not', () => {
  const { ask, outcome, pass } = limits({
    perChannelMinute: 1e6,
    waitingPerChannel: 1e6,
    waitingPerSpeaker: 1,
  })
  for (let n = 0; n < 10_000; n += 1) {
    const admitted = ask(`u-${n}`)
    if (admitted.ok && n > 0) admitted.done()
  }
  pass(60_000)
  expect([outcome('u-new'), outcome('u-0'), outcome('u-1')]).toEqual(['ok', 'waitingPerSpeaker', 'ok'])
})

test('a speaker who is new when others are forgotten is counted from the first message on', () => {
  const { ask, outcome } = limits({ perChannelMinute: 1e6, waitingPerChannel: 1e6, waitingPerSpeaker: 1 })
  for (let n = 0; n < 9_998; n += 1) ask(`u-${n}`)
  expect([outcome('u-new', 'fake:2'), outcome('u-new', 'fake:2')]).toEqual(['ok', 'waitingPerSpeaker'])
})

test.each([0, -1, 1.5, Number.NaN, '5' as never])('the limit %j is refused', (value) => {
  expect(() => limits({ waitingPerSpeaker: value })).toThrow(/^admission\.waitingPerSpeaker/)
})
