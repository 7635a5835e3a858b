import {
  type AdmittedCall,
  anthropicMessages,
  type CallRoute,
  getterFor,
  openWithCredential,
  passAnswer,
  type RequestTable,
  rewriteRequest,
  STREAM_LIMITS,
  sharedAgent,
} from '@sandbox/broker/engine'
import { limits, PI_PLACEHOLDER } from '@sandbox/protocol'
import { FLAG_OF, type FlaggedField, type SortedFlags, sortFlags } from '../model-input/beta-flags.ts'
import { messagesTable } from '../model-input/messages-table.ts'
import { inputRefusal } from '../model-input/refusal-words.ts'
import type { ResolvedPiOptions } from '../options.ts'
import type { PiTurns } from '../pi-turns.ts'
import { chooseUpstream, urlOf } from '../upstream-choice.ts'

/** What the Messages routes are made of. */
export interface MessagesRouteOptions {
  readonly options: ResolvedPiOptions
  readonly turns: PiTurns
  /** Silence of the upstream after which a comment keeps the guest's side alive, in milliseconds. */
  readonly keepAliveMs: number
}

type Endpoint = 'messages' | 'count_tokens'

const PATHS: Readonly<Record<Endpoint, string>> = {
  messages: '/v1/messages',
  count_tokens: '/v1/messages/count_tokens',
}

/**
 * A Messages route: the request's own bytes, held against the table of the turn's level; the upstream's own bytes,
 * searched. Several calls at once, streamed or not, for as long as the turn lasts: a model may think in silence.
 */
export function messagesRoute(endpoint: Endpoint, route: MessagesRouteOptions): CallRoute {
  return {
    kind: 'model',
    name: endpoint === 'messages' ? anthropicMessages.name : `${anthropicMessages.name}/${endpoint}`,
    policy: { method: 'POST', headers: 'any', placeholder: PI_PLACEHOLDER, queries: ['?beta=true'] },
    requestBytes: limits.PI_CALL_BODY_BYTES,
    answerBytes: limits.PI_CALL_ANSWER_BYTES,
    idleMs: route.options.idleMs,
    lane: 'parallel',
    errorShape: anthropicMessages.errorBody,
    unusable: 'upstream_invalid',
    run: (call) => callMessages(endpoint, route, call),
  }
}

/** The credential is asked for last: a payload that is refused spends none. */
async function callMessages(
  endpoint: Endpoint,
  { options, turns, keepAliveMs }: MessagesRouteOptions,
  call: AdmittedCall,
): Promise<unknown> {
  const { signal, record, head } = call
  const flags = sortFlags(head.headers.get('anthropic-beta'), options.flags)
  const chosen = await chooseUpstream(options.upstream, call)
  const { thinking: level } = turns.contextOf(call.turn)
  const request = await rewriteRequest({
    bytes: call.bytes,
    table: tableFor({ endpoint, level, flags }),
    host: {
      model: chosen.model,
      maxOutputTokens: options.maxOutputTokens,
      allowFields: options.allowFields,
      setFields: options.setFields,
    },
    signal,
  })
  if (!request.ok) throw inputRefusal(request)
  record.droppedFields = [...request.dropped, ...flags.dropped.map((flag) => `anthropic-beta: ${flag}`)]
  record.model = chosen.model
  record.outputTokens = endpoint === 'messages' ? request.facts.outputTokens : 0
  const url = urlOf(chosen, PATHS[endpoint], head.query)
  const upstream = await openWithCredential(call, {
    agent: sharedAgent(),
    url,
    getter: getterFor(options.oauthToken, options.upstream.home.base.origin, url),
    authSlot: chosen.authSlot,
    body: request.bytes,
    accept: request.facts.stream ? 'text/event-stream' : 'application/json',
    headers: passedOn(head.headers, flags),
  })
  return passAnswer(call, {
    upstream,
    family: anthropicMessages,
    answerBytes: limits.PI_CALL_ANSWER_BYTES,
    limits: { ...STREAM_LIMITS, totalBytes: limits.PI_STREAM_BYTES, keepAliveMs },
    usageAsked: request.facts.usageAsked,
  })
}

const FIELDS = Object.keys(FLAG_OF) as FlaggedField[]
const tables = new Map<string, RequestTable>()

/** There are few, since few flags matter here. */
function tableFor(wanted: {
  readonly endpoint: Endpoint
  readonly level: Parameters<typeof messagesTable>[0]['level']
  readonly flags: SortedFlags
}): RequestTable {
  const { endpoint, level, flags } = wanted
  const flagged = FIELDS.filter((field) => flags.passed.includes(FLAG_OF[field]))
  const key = [endpoint, level, ...flagged].join(' ')
  const table = tables.get(key) ?? messagesTable({ endpoint, level, flagged: new Set(flagged) })
  tables.set(key, table)
  return table
}

const VERSION = /^\d{4}-\d{2}-\d{2}$/
const OLDEST_VERSION = '2023-06-01'
const PRINTABLE = /^[\x20-\x7e]{1,4096}$/

/**
 * PB-09, W-37 and decision 13: of the guest's headers these travel, each within its bounds. Everything else is
 * ignored.
 */
function passedOn(given: ReadonlyMap<string, string>, flags: SortedFlags): Readonly<Record<string, string>> {
  const version = given.get('anthropic-version') ?? ''
  const named = ['user-agent', 'x-app'].flatMap((name) => {
    const value = given.get(name)
    return value !== undefined && PRINTABLE.test(value) ? [[name, value] as const] : []
  })
  return {
    'accept-encoding': 'identity',
    'anthropic-version': VERSION.test(version) ? version : OLDEST_VERSION,
    ...(flags.passed.length === 0 ? {} : { 'anthropic-beta': flags.passed.join(',') }),
    ...Object.fromEntries(named),
  }
}
