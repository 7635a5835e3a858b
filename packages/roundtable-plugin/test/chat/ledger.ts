import type { ChannelKey } from '../../src/host-contract.ts'
import type { Behaviour, Mode } from './script.ts'

/** One message of the chat, and what became of it. */
export interface Said {
  readonly id: number
  readonly channel: ChannelKey
  readonly speaker: string
  readonly behaviour: Behaviour
  /** Who admitted it, and who owned the channel when its turn came. */
  readonly admittedBy: Mode
  readonly ownedBy: Mode
  /** Ids of the same channel below this one are forgotten, so no request for this message holds them. */
  readonly floor: number
  /** Somebody stopped the channel, took the right to spend back, or restarted the host, before it was answered. */
  stopped: boolean
  revoked: boolean
  /** It may not be paid for from before it was said until it is over. */
  barred: boolean
  restarted: boolean
  /** Model calls that were made for it. */
  calls: number
  replies: string[]
  over: boolean
}

/** Whose key pays for a message. Every third speaker has none in channels of an odd number. */
export function keyOf(mode: Mode, channel: string, speaker: string): string | undefined {
  const [place, person] = [Number(channel.split(':')[1]), Number(speaker.split('-')[1])]
  if (place % 2 === 1 && person % 3 === 0) return undefined
  return `sk-${mode}-${place}-${person}-0123456789abcdef`
}

/** The text of a message. */
export function textOf(id: number, behaviour: Behaviour): string {
  return `#m${id}# please ${behaviour}`
}

/** The ids of messages in a text. */
export function idsIn(text: string): readonly number[] {
  return [...new Set([...text.matchAll(/#m(\d+)#/g)].map((match) => Number(match[1])))].sort((a, b) => a - b)
}

/** What a message is answered with when all goes well. */
export function answerOf({ id, behaviour, channel, speaker, ownedBy }: Said): string {
  const told = behaviour === 'tool' && ownedBy === 'sealed' ? ` as ${speaker} in ${channel}` : ''
  return `re #m${id}#${told}`
}

const WORDS = {
  stopped: /^Stopped\.$/,
  revoked: /^Spending was stopped for you in this channel/,
  missing: /^No key is set for you in this channel/,
  trouble:
    /^(The model service could not be reached|The model service has too much to do|I could not finish this)/,
}

/** What is wrong with a message's replies; `undefined` when nothing is. To be asked once it is over. */
export function problemOf(said: Said): string | undefined {
  const { admittedBy, ownedBy, replies, behaviour, channel, speaker } = said
  const what = `message ${said.id} (${behaviour}) of ${speaker} in ${channel}, ${ownedBy}`
  if (replies.length > 1) return `${what} has ${replies.length} replies: ${replies.join(' | ')}`
  const wanted = admittedBy !== 'off' && admittedBy === ownedBy
  const [reply] = replies
  if (reply === undefined) return wanted && !said.restarted ? `${what} has no reply` : undefined
  if (!wanted && !said.restarted) return `${what} should have none, and has: ${reply}`
  const fine = kindsOf(said).some((kind) =>
    kind === 'answer' ? reply === answerOf(said) : WORDS[kind].test(reply),
  )
  if (!fine) return `${what} has an unexpected reply: ${reply}`
  return callsProblem(said, what, reply)
}

/** Nobody pays for a message twice, and nobody pays for one that may not be paid for. */
function callsProblem(said: Said, what: string, reply: string): string | undefined {
  const { behaviour, calls, channel, speaker, ownedBy } = said
  const most = behaviour === 'tool' && ownedBy === 'sealed' ? 2 : 1
  if (reply === answerOf(said) && calls !== most) return `${what} was answered with ${calls} calls`
  const free = said.barred || keyOf(ownedBy, channel, speaker) === undefined
  return free && calls > 0 ? `${what} may not be paid for and has ${calls} calls` : undefined
}

function kindsOf(said: Said): readonly ('answer' | keyof typeof WORDS)[] {
  const { behaviour, channel, speaker, ownedBy, stopped, revoked, restarted } = said
  const cut = [
    ...(stopped || restarted ? (['stopped'] as const) : []),
    ...(revoked ? (['revoked'] as const) : []),
  ]
  if (keyOf(ownedBy, channel, speaker) === undefined) return [...cut, 'missing']
  if (said.barred) return cut
  const well = behaviour === 'answer' || behaviour === 'slow' || behaviour === 'tool'
  return [...cut, well ? 'answer' : 'trouble']
}
