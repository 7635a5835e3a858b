import { limits, type PrecheckJob, type PrecheckOutcome } from '@sandbox/protocol'
import type { BrokerWire } from '../shared/broker-wire.ts'
import { isObject, jsonBytes } from '../shared/json.ts'
import { softDeadlineMs } from '../shared/soft-deadline.ts'
import { cutText } from './cut-text.ts'
import { ScriptMcp } from './script-mcp.ts'

/** What a script's default export is called with (PC-11). */
interface ScriptInput {
  readonly mcp: Pick<ScriptMcp, 'call' | 'json'>
  readonly firedAt: string
  readonly timeZone: string
  readonly today: string
  readonly schedule: PrecheckJob['schedule']
}

type Script = (input: ScriptInput) => unknown

const SHAPE = 'It has to return { wake: false, note?: "text" } or { wake: true, context: "text" }.'

/** Runs the script of a job and says what it decided. A script that fails, or takes too long, is an outcome as well. */
export async function runScript(job: PrecheckJob, wire: BrokerWire): Promise<PrecheckOutcome> {
  const over = new AbortController()
  const late = Promise.withResolvers<PrecheckOutcome>()
  const timer = setTimeout(() => {
    late.resolve(failed('The script was not done in time.'))
    over.abort()
  }, softDeadlineMs(job.remainingMs))
  try {
    return await Promise.race([
      decide(job, new ScriptMcp({ wire, servers: job.servers, signal: over.signal })),
      stray(),
      late.promise,
    ])
  } catch (error) {
    return failed(wordsOf(error))
  } finally {
    clearTimeout(timer)
  }
}

/** What a job that cannot be read, or a script that threw, comes to. */
export function failed(text: string): PrecheckOutcome {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the text is read by people and models
  const plain = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ' ').trim()
  return {
    ok: false,
    error: cutText(plain === '' ? 'The script failed.' : plain, limits.PRECHECK_ERROR_CHARS),
  }
}

async function decide(job: PrecheckJob, mcp: ScriptMcp): Promise<PrecheckOutcome> {
  const { script, firedAt, timeZone, today, schedule } = job
  const run = await load(script)
  const { call, json } = mcp
  return answerOf(await run({ mcp: { call, json }, firedAt, timeZone, today, schedule: { ...schedule } }))
}

async function load(script: string): Promise<Script> {
  // Not a file: there is none that only this program could write. Bun knows this form of the URL alone.
  const url = `data:text/javascript;base64,${Buffer.from(script).toString('base64')}`
  const found: { readonly default?: unknown } = await import(url).catch((error) => {
    // The script itself is in the address.
    throw new TypeError(`The script cannot be loaded: ${wordsOf(error).replaceAll(url, 'the script')}`)
  })
  if (typeof found.default === 'function') return found.default as Script
  throw new TypeError('The script has no default export that is a function.')
}

function answerOf(value: unknown): PrecheckOutcome {
  const outcome = knownAnswer(value)
  if (outcome === undefined) throw new TypeError(`The script returned something else. ${SHAPE}`)
  const text = (outcome.wake ? outcome.context : outcome.note) ?? ''
  if (text.length > limits.PRECHECK_TEXT_CHARS) {
    throw new TypeError(
      `The script returned ${text.length} characters of text, ${limits.PRECHECK_TEXT_CHARS} at most.`,
    )
  }
  // The names around it: `{"turnId":"…","result":…}`.
  const bytes = jsonBytes(outcome) + 128
  if (bytes > limits.PRECHECK_MESSAGE_BYTES) {
    throw new TypeError(
      `The script returned ${bytes} bytes of text, ${limits.PRECHECK_MESSAGE_BYTES} at most.`,
    )
  }
  return outcome
}

function knownAnswer(value: unknown): Extract<PrecheckOutcome, { ok: true }> | undefined {
  if (!isObject(value)) return undefined
  const { wake, note, context } = value
  if (wake === true && typeof context === 'string') return { ok: true, wake, context }
  if (wake !== false || (note !== undefined && typeof note !== 'string')) return undefined
  return { ok: true, wake, ...(note === undefined ? {} : { note }) }
}

/** Rejects with what the script throws where nobody catches it, such as in a timer. */
function stray(): Promise<never> {
  return new Promise((_, reject) => {
    process.on('uncaughtException', reject)
    process.on('unhandledRejection', reject)
  })
}

/** Whatever was thrown: what has no words has none. */
function wordsOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return ''
  }
}
