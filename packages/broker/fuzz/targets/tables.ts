import type { RequestTable } from '../../src/engine/body-table/request-table.ts'
import { rewriteRequest } from '../../src/engine/body-table/rewrite-request.ts'
import { chatTable } from '../../src/model-input/chat-table.ts'
import { responsesTable } from '../../src/model-input/responses-table.ts'
import { corpus, shaken } from '../corpus.ts'
import { jsonText } from '../json-text.ts'
import { type FuzzTarget, hold } from '../target.ts'

const HOST = { model: 'host-model', maxOutputTokens: 100, ownsId: () => false }
type Body = Record<string, unknown>

function target(name: string, table: RequestTable, check: (body: Body) => string | undefined): FuzzTarget {
  const seeds = corpus(name.split('-')[0] ?? '')
  const known = new Set(table.body.fields.keys())
  return {
    name,
    about: `request bytes against the ${name} table: what is sent is JSON, the host’s, and settled`,
    async run(random) {
      const text = Buffer.from(jsonText(random, shaken(random, random.pick(seeds))))
      const bytes = random.once(3) ? random.mutated(text) : Uint8Array.from(text)
      const copy = Uint8Array.from(bytes)
      const made = await rewriteRequest({ bytes, table, host: HOST })
      hold(Buffer.compare(bytes, copy) === 0, 'the guest’s bytes were changed', copy)
      if (!made.ok) {
        hold(!/x\.example/.test(made.problem), 'a value is in the problem', made)
        return
      }
      const body = parsed(made.bytes)
      hold(body !== undefined, 'what is sent is no JSON object', { sent: read(made.bytes), got: read(copy) })
      hold(parsed(copy) !== undefined, 'what was no JSON was let through', copy)
      hold(body.model === HOST.model, 'the model is not the host’s', body)
      for (const key of Object.keys(body)) hold(known.has(key), `field ${key} was let through`, body)
      const problem = check(body)
      hold(problem === undefined, `let through: ${problem}`, body)
      const again = await rewriteRequest({ bytes: made.bytes, table, host: HOST })
      hold(again.ok && again.dropped.length === 0, 'what is sent is refused or cut', { body, again })
      hold(Buffer.compare(again.bytes, made.bytes) === 0, 'done twice is not done once', made.bytes)
    },
  }
}

const read = (bytes: Uint8Array) => Buffer.from(bytes).toString()

function parsed(bytes: Uint8Array): Body | undefined {
  try {
    const value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

const within = (value: unknown) =>
  value === undefined ||
  (Number.isInteger(value) && Number(value) >= 1 && Number(value) <= HOST.maxOutputTokens)

/** Chat Completions. */
export const chatTables = target('chat-table', chatTable({ tokenLimitField: 'max_tokens' }), (body) => {
  if (body.max_tokens === undefined && body.max_completion_tokens === undefined) return 'no token limit'
  if (!within(body.max_tokens) || !within(body.max_completion_tokens)) return 'a token limit of the guest'
  if (body.n !== undefined && body.n !== null && body.n !== 1) return 'several choices'
  if (body.store === true) return 'store'
  return undefined
})

/** Responses. */
export const responsesTables = target('responses-table', responsesTable(), (body) => {
  if (!within(body.max_output_tokens)) return 'a token limit of the guest'
  if (body.store !== false) return 'store'
  if (body.background === true) return 'background'
  if (typeof body.previous_response_id === 'string') return 'a response of somebody else'
  return undefined
})
