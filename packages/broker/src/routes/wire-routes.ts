import { SEALED_PLACEHOLDER } from '@sandbox/protocol'
import type { RequestTable } from '../engine/body-table/request-table.ts'
import type { CallRoute } from '../engine/call/route.ts'
import { STREAM_LIMITS } from '../engine/stream/event-answer.ts'
import { openAiChat } from '../engine/wire/openai-chat.ts'
import { openAiResponses } from '../engine/wire/openai-responses.ts'
import { chatTable } from '../model-input/chat-table.ts'
import { responsesTable } from '../model-input/responses-table.ts'
import type { ResolvedOptions } from '../options.ts'
import type { Upstream } from '../upstream-choice.ts'
import { wireRoute } from './wire-route.ts'

/** The routes of official clients, by path. `keepAliveMs` is for streams; see {@link STREAM_LIMITS}. */
export function wireRoutes(
  options: ResolvedOptions,
  keepAliveMs: number,
): [path: string, route: CallRoute][] {
  const common = { placeholder: SEALED_PLACEHOLDER, limits: { ...STREAM_LIMITS, keepAliveMs } }
  const chat = wireRoute(options, {
    ...common,
    family: openAiChat,
    table: chatTableFor,
    endpoint: (upstream) => upstream.chat,
  })
  const { home, picker } = options.upstream
  if (home.responses === undefined && picker === undefined) return [['/v1/chat/completions', chat]]
  const { allowStore } = options
  const table = built(`responses ${allowStore}`, () => responsesTable({ allowStore }))
  const responses = wireRoute(options, {
    ...common,
    family: openAiResponses,
    table: () => table,
    endpoint: (upstream) => upstream.responses,
  })
  return [
    ['/v1/chat/completions', chat],
    ['/v1/responses', responses],
  ]
}

const tables = new Map<string, RequestTable>()

/** Tables are built once for all brokers of a process: a broker lives for a turn. */
function built(name: string, build: () => RequestTable): RequestTable {
  const table = tables.get(name) ?? build()
  tables.set(name, table)
  return table
}

function chatTableFor({ tokenLimitField, renameTokenLimit, streamUsage }: Upstream): RequestTable {
  return built(`chat ${tokenLimitField} ${renameTokenLimit} ${streamUsage}`, () =>
    chatTable({ tokenLimitField, renameTokenLimit, streamUsage }),
  )
}
