import { SEALED_PLACEHOLDER } from '@sandbox/protocol'
import type { CallRoute } from '../engine/call/route.ts'
import { STREAM_LIMITS } from '../engine/stream/event-answer.ts'
import { openAiChat } from '../engine/wire/openai-chat.ts'
import { openAiResponses } from '../engine/wire/openai-responses.ts'
import { chatTable } from '../model-input/chat-table.ts'
import { responsesTable } from '../model-input/responses-table.ts'
import type { ResolvedOptions } from '../options.ts'
import { wireRoute } from './wire-route.ts'

/** The routes of official clients, by path. `keepAliveMs` is for streams; see {@link STREAM_LIMITS}. */
export function wireRoutes(
  options: ResolvedOptions,
  keepAliveMs: number,
): [path: string, route: CallRoute][] {
  const common = { placeholder: SEALED_PLACEHOLDER, limits: { ...STREAM_LIMITS, keepAliveMs } }
  const tables = {
    max_tokens: chatTable({ tokenLimitField: 'max_tokens' }),
    max_completion_tokens: chatTable({ tokenLimitField: 'max_completion_tokens' }),
  }
  const chat = wireRoute(options, {
    ...common,
    family: openAiChat,
    table: ({ tokenLimitField }) => tables[tokenLimitField],
    endpoint: (upstream) => upstream.chat,
  })
  const { home, picker } = options.upstream
  if (home.responses === undefined && picker === undefined) return [['/v1/chat/completions', chat]]
  const table = responsesTable()
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
