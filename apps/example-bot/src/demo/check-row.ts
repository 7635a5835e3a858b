import type { CheckTrace } from './check-room.ts'
import type { CheckStep } from './check-step.ts'
import { type Attempt, readAttempts } from './hostile-attempts.ts'
import type { StandInCall } from './stand-in-model.ts'

/** A row of the check: one turn, and whether it is as it must be. */
export interface CheckRow {
  /** From 1. 0 is the row about everything that is no turn. */
  readonly turn: number
  readonly channel: string
  readonly speaker: string
  readonly about: string
  /** Fingerprint; `-` when no key may be used. Fingerprints mean nothing outside this process. */
  readonly keyExpected: string
  /** Fingerprint of the key that reached the model service; `-` when it saw nothing. */
  readonly keyUsed: string
  readonly driver: string
  readonly ms: number
  /** `answered`, or category and reason as the host tells them. */
  readonly outcome: string
  readonly ok: boolean
  /** What is not as expected. */
  readonly problems: readonly string[]
  /** Of the hostile bundle: every attempt. */
  readonly attempts?: readonly Attempt[]
}

/** What a row is made of. */
export interface RowEvidence {
  readonly turn: number
  readonly step: CheckStep
  readonly trace: CheckTrace
  /** What reached the model service with the step's mark. */
  readonly service: readonly StandInCall[]
  readonly driver: string
  readonly container: boolean
  /** Fingerprint of the key that must pay. */
  readonly keyExpected: string | undefined
  /** Every key of the check: none may be said. */
  readonly secrets: readonly string[]
}

/** What the broker may send to a model service; the last four are HTTP's own. */
const HEADERS = ['accept', 'authorization', 'connection', 'content-length', 'content-type', 'host']
const FIELDS = ['max_tokens', 'messages', 'model', 'stream', 'tool_choice', 'tools']

/** Compares what was seen with the plan. Who paid is taken from what the model service saw. */
export function checkRow(evidence: RowEvidence): CheckRow {
  const { turn, step, trace, service, driver, container, keyExpected } = evidence
  const outcome = outcomeOf(trace)
  const used = [...new Set(service.map(({ fingerprint = 'none' }) => fingerprint))].sort()
  const problems = [
    ...(outcome === step.outcome ? [] : [`${step.outcome} expected`, ...hostCause(trace)]),
    ...(used.join() === (keyExpected ?? '') ? [] : ['another key was used than expected']),
    ...(trace.turn === undefined || trace.turn.driver === driver ? [] : [`it ran on ${trace.turn.driver}`]),
    ...hostDisagrees(trace, used),
    ...service.flatMap((call) => wrongCall(call, step)),
    ...spokenSecrets(trace, evidence.secrets),
    ...(step.verify?.(trace, container) ?? []),
  ]
  const isAttack = trace.message.text.startsWith('attack ')
  return {
    turn,
    channel: step.channel,
    speaker: step.speaker.id,
    about: step.about,
    keyExpected: keyExpected ?? '-',
    keyUsed: used.join('+') || '-',
    driver: trace.turn?.driver ?? '-',
    ms: trace.turn?.durationMs ?? trace.durationMs,
    outcome,
    ok: problems.length === 0,
    problems: [...new Set(problems)],
    ...(isAttack ? { attempts: readAttempts(trace.replies.join('\n'), container) } : {}),
  }
}

/** One row about what is no turn: calls that nobody asked for, calls without a key, and the stand-in's own log. */
export function restRow(options: {
  readonly service: readonly StandInCall[]
  readonly marks: ReadonlySet<string>
  readonly driver: string
  readonly secrets: readonly string[]
}): CheckRow {
  const { service, marks, driver, secrets } = options
  const strange = service.filter((call) => !marks.has(markOf(call) ?? ''))
  const problems = [
    ...strange.map(({ method, path, status }) => `${method} ${path} (${status}) belongs to no turn`),
    ...(service.length > 0 ? [] : ['the model service saw nothing at all']),
    ...(saysSecret(JSON.stringify(service), secrets) ? ['a key stands in what the stand-in recorded'] : []),
  ]
  return {
    turn: 0,
    channel: '*',
    speaker: '*',
    about: 'nothing else reached the model service',
    keyExpected: '-',
    keyUsed: [...new Set(strange.map(({ fingerprint = 'none' }) => fingerprint))].sort().join('+') || '-',
    driver,
    ms: 0,
    outcome: `${service.length} calls`,
    ok: problems.length === 0,
    problems,
  }
}

/** The mark of the message that a call to the model service is about. */
export function markOf(call: StandInCall): string | undefined {
  return /#[\w-]+/.exec(call.text ?? '')?.[0]
}

/** In the host's own words: guest text decides nothing here. */
function outcomeOf({ turn, window, calls, failure }: CheckTrace): string {
  if (failure !== undefined) return 'not taken'
  if (turn === undefined) return 'no turn'
  if (turn.state !== 'settled') return `left in ${turn.state}`
  if (turn.ok === true) return 'answered'
  const bad = calls.findLast(({ route, reason }) => route === 'model' && reason !== 'ok')
  const worker = window.find(({ reason }) => reason === 'second_hello')
  if (bad === undefined) return [turn.category, worker?.reason].filter(Boolean).join(': ')
  const status = bad.reason === 'upstream_status' ? ` ${bad.upstreamStatus}` : ''
  return `${turn.category}: ${bad.reason}${status}`
}

function hostCause({ turn, failure }: CheckTrace): readonly string[] {
  const cause = failure ?? turn?.cause
  return cause === undefined ? [] : [`the host says: ${cause}`]
}

/** The host's events name the keys that it spent: they must be those that arrived. */
function hostDisagrees({ calls }: CheckTrace, used: readonly string[]): readonly string[] {
  const told = new Set(calls.flatMap(({ fingerprint }) => (fingerprint === undefined ? [] : [fingerprint])))
  if ([...told].sort().join() === used.join()) return []
  return [`the host tells of ${[...told].join('+') || 'no key'}`]
}

function wrongCall(call: StandInCall, step: CheckStep): readonly string[] {
  const headers = call.headers.filter((name) => !HEADERS.includes(name))
  const fields = call.fields.filter((name) => !FIELDS.includes(name))
  return [
    ...(call.method === 'POST' && call.path === '/v1/chat/completions'
      ? []
      : [`${call.method} ${call.path}`]),
    ...(headers.length === 0 ? [] : [`headers beyond the list: ${headers.join(', ')}`]),
    ...(fields.length === 0 ? [] : [`fields beyond the list: ${fields.join(', ')}`]),
    ...(call.status === 400 ? ['the model service refused the request'] : []),
    ...(call.speaker === step.speaker.name || call.speaker === 'stranger'
      ? []
      : ['it names another speaker']),
  ]
}

function spokenSecrets({ replies, failure = '' }: CheckTrace, secrets: readonly string[]): readonly string[] {
  return saysSecret([...replies, failure].join('\n'), secrets) ? ['the reply tells a key'] : []
}

/** The check's own way of looking: it must not lean on the product's. */
function saysSecret(text: string, secrets: readonly string[]): boolean {
  return secrets.some((secret) => {
    const bytes = Buffer.from(secret)
    const base64 = bytes.toString('base64').replace(/.{0,4}$/, '')
    const json = JSON.stringify(secret).slice(1, -1)
    const forms = [secret, json, encodeURIComponent(secret), base64, bytes.toString('hex')]
    return forms.some((form) => text.toLowerCase().includes(form.toLowerCase()))
  })
}
