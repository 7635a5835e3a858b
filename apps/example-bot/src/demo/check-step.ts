import type { CheckKeys, KeyName } from './check-keys.ts'
import type { CheckMessage, CheckTrace } from './check-room.ts'

/** What a turn must come to. */
export interface CheckStep extends CheckMessage {
  /** Stands in `text` and nowhere else: by it, calls that reach the model service are told apart. */
  readonly mark: string
  /** What the row is about, in a few words. */
  readonly about: string
  /** The key that must pay; absent when the model service must see nothing. */
  readonly key?: KeyName
  /** `answered`, or category and reason such as `credential: credential_missing`. */
  readonly outcome: string
  /** Changes something before the message. */
  before?(keys: CheckKeys): void
  /** What else must hold, as a list of what does not. */
  verify?(trace: CheckTrace, container: boolean): readonly string[]
}

/** Groups one after the other; the steps of a group are said at the same moment. */
export type CheckChain = readonly (readonly CheckStep[])[]

/** A greeting that must be answered with the speaker's name and the mark. */
export function hello(mark: string, step: Omit<CheckStep, 'mark' | 'text' | 'outcome'>): CheckStep {
  const { name } = step.speaker
  return {
    ...step,
    mark,
    text: `hello ${mark}`,
    outcome: 'answered',
    verify: ({ replies }) => includes(replies, [`Hello ${name}!`, mark]),
  }
}

/** What must hold when the host tool had to be called: for this speaker in this channel, and for nobody else. */
export function toolCalledFor({ toolScopes, message }: CheckTrace): readonly string[] {
  if (toolScopes.length === 0) return ['the host tool was not called']
  return toolScopes
    .filter(({ channel, speaker }) => channel !== message.channel || speaker !== message.speaker.id)
    .map(({ channel, speaker }) => `the host tool was called for ${speaker} in ${channel}`)
}

/** Which of these words the reply lacks. */
export function includes(replies: readonly string[], words: readonly string[]): readonly string[] {
  const text = replies.join('\n')
  return words.filter((word) => !text.includes(word)).map((word) => `the reply has no "${word}"`)
}

/** Which of these words the reply has, but must not. */
export function excludes(replies: readonly string[], words: readonly string[]): readonly string[] {
  const text = replies.join('\n')
  return words.filter((word) => text.includes(word)).map((word) => `the reply has "${word}"`)
}
