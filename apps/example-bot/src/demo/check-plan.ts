import { type CheckChain, type CheckStep, excludes, hello, includes, toolCalledFor } from './check-step.ts'
import { afterwards, hostileBundle, hostileText } from './hostile-steps.ts'

/** What runs on one bot. */
export interface CheckStage {
  readonly guest: 'ours' | 'hostile'
  /** One after the other; the chains of a part run side by side. */
  readonly parts: readonly (readonly CheckChain[])[]
}

/** What the plan must know of the surroundings. */
export interface PlanOptions {
  readonly modelUrl: string
  readonly keysPath: string
  /** How often the two speakers of one channel take turns. Default 20. */
  readonly rounds?: number
  /** Whether the workers are containers. */
  readonly container: boolean
}

const cleo = { id: 'u-cleo', name: 'Cleo' }
const ann = { id: 'u-ann', name: 'Ann' }
const ben = { id: 'u-ben', name: 'Ben' }
const dan = { id: 'u-dan', name: 'Dan' }
/** Calls herself what somebody else is called. */
const eve = { id: 'u-eve', name: 'Ann' }

const NO_KEY = 'credential: credential_missing'

/** Every channel that the plan uses. */
export const CHECK_CHANNELS = ['alpha', 'beta', 'team', 'nokey', 'old', 'hostile'].map(
  (name) => `demo:${name}` as const,
)

/** The whole plan. */
export function checkPlan(options: PlanOptions): readonly CheckStage[] {
  return [
    { guest: 'ours', parts: [sideBySide(options.rounds ?? 20), [oneByOne()]] },
    { guest: 'hostile', parts: [[hostileBundle(options)]] },
    { guest: 'ours', parts: [[afterwards()]] },
  ]
}

/** Channels at the same time; two speakers of one channel who speak at the same moment, again and again. */
function sideBySide(rounds: number): readonly CheckChain[] {
  const thrice = (channel: 'alpha' | 'beta') =>
    [1, 2, 3].map((n) => [
      hello(`#${channel}${n}`, {
        channel: `demo:${channel}`,
        speaker: cleo,
        key: channel,
        about: 'a key by channel',
      }),
    ])
  const both = Array.from({ length: rounds }, (_, n) => [
    hello(`#ann${n + 1}`, { channel: 'demo:team', speaker: ann, key: 'ann', about: 'a key by speaker' }),
    hello(`#ben${n + 1}`, { channel: 'demo:team', speaker: ben, key: 'ben', about: 'a key by speaker' }),
  ])
  return [thrice('alpha'), thrice('beta'), both]
}

function refused(
  mark: string,
  step: Pick<CheckStep, 'channel' | 'speaker' | 'about' | 'before'>,
): readonly CheckStep[] {
  return [{ ...step, mark, text: `hello ${mark}`, outcome: NO_KEY }]
}

function oneByOne(): CheckChain {
  return [
    refused('#nokey', { channel: 'demo:nokey', speaker: cleo, about: 'a channel without a key' }),
    refused('#dan', { channel: 'demo:team', speaker: dan, about: 'a speaker without a key' }),
    refused('#eve', { channel: 'demo:team', speaker: eve, about: 'the name of another speaker' }),
    [
      {
        channel: 'demo:old',
        speaker: cleo,
        mark: '#old',
        text: 'hello #old',
        about: 'a key that the service refuses',
        key: 'unknown',
        outcome: 'credential: upstream_status 401',
      },
    ],
    ...memoryAndTools(),
    ...hostileText(),
    ...changedKeys(),
  ]
}

function memoryAndTools(): CheckChain {
  const step = (
    mark: string,
    text: string,
    speaker: typeof ann,
    more: Pick<CheckStep, 'about' | 'verify'>,
  ) => [
    {
      channel: 'demo:team' as const,
      speaker,
      mark,
      text: `${text} ${mark}`,
      key: speaker === ann ? ('ann' as const) : ('ben' as const),
      outcome: 'answered',
      ...more,
    },
  ]
  return [
    step('#mem1', 'remember that I like tea', ann, {
      about: 'a fact is kept',
      verify: ({ replies }) => includes(replies, ['I will remember that, Ann.']),
    }),
    step('#mem2', 'what do you remember?', ben, {
      about: 'nobody reads the facts of another',
      verify: ({ replies }) => excludes(replies, ['tea']),
    }),
    step('#mem3', 'what do you remember?', ann, {
      about: 'the next worker knows it',
      verify: ({ replies }) => includes(replies, ['tea']),
    }),
    step('#clock', 'what time is it?', ben, {
      about: 'a host tool learns who asks',
      verify: (trace) => [...includes(trace.replies, ['It is ']), ...toolCalledFor(trace)],
    }),
  ]
}

/** The key file changes between two turns; the bot is not told. */
function changedKeys(): CheckChain {
  const alpha = { channel: 'demo:alpha', speaker: cleo } as const
  return [
    [hello('#key1', { ...alpha, key: 'alpha', about: 'before the key changes' })],
    [
      hello('#key2', {
        ...alpha,
        key: 'alpha2',
        about: 'the rule names another key',
        before: (keys) => keys.assign('demo:alpha', 'alpha2'),
      }),
    ],
    [
      hello('#key3', {
        ...alpha,
        key: 'alpha3',
        about: 'the key behind the rule changed',
        before: (keys) => keys.fill('alpha2', 'alpha3'),
      }),
    ],
    refused('#key4', {
      ...alpha,
      about: 'the rule is gone',
      before: (keys) => keys.assign('demo:alpha', undefined),
    }),
  ]
}
