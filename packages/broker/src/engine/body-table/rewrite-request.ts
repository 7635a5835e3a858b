import { setImmediate as letOthersRun } from 'node:timers/promises'
import { type Edit, orderEdits } from '../json/json-edits.ts'
import { JsonProblem } from '../json/json-problem.ts'
import type { RequestFacts, RewriteOptions, RewrittenRequest } from './request-table.ts'
import { TableProblem } from './table-problem.ts'
import { TableWalk } from './table-walk.ts'

/** Read between two looks at the clock. */
const PIECE_BYTES = 64 * 1024
const COPY_BYTES = 4 * 1024 * 1024
/** Work of one piece, about: others run in between. */
const PIECE_MS = 5

/**
 * Reads a body once, holds it against a table and cuts and writes what the table says; all else travels as the
 * guest's own bytes. Lets other work run every few milliseconds. Malformed JSON, duplicate keys, invalid UTF-8
 * and nesting deeper than 64 are refused. Rejects only when `signal` fires, or when the host's own `ownsId` throws.
 */
export async function rewriteRequest(options: RewriteOptions): Promise<RewrittenRequest> {
  const { bytes, table, host, signal } = options
  signal?.throwIfAborted()
  const walk = new TableWalk(bytes, table, host)
  const pause = pauses(signal)
  try {
    while (walk.run(PIECE_BYTES)) if (pause.isDue()) await pause.now()
  } catch (error) {
    if (error instanceof JsonProblem) return { ok: false, problem: error.message, path: walk.path() }
    if (error instanceof TableProblem) {
      return { ok: false, problem: error.message, path: walk.path(error.field) }
    }
    throw error
  }
  const edits = orderEdits(walk.edits)
  return {
    ok: true,
    bytes: edits.length === 0 ? bytes : await edited(options, edits, pause),
    dropped: [...walk.dropped],
    facts: {
      stream: false,
      usageAsked: false,
      outputTokens: host.maxOutputTokens,
      ...walk.facts,
    } satisfies RequestFacts,
  }
}

async function edited(
  { bytes, reuse }: RewriteOptions,
  edits: readonly Edit[],
  pause: Pauses,
): Promise<Uint8Array> {
  const spans = keptSpans(edits, bytes.length)
  const last = spans[spans.length - 1] as Span
  const size = last.at + last.end - last.start
  const { buffer, byteOffset } = bytes
  const isWithin = reuse === true && byteOffset + size <= buffer.byteLength
  // Written all over, so that it may hold anything before. Of the pool when small: memory of its own takes longer to get
  // than all the copying.
  const into = isWithin ? new Uint8Array(buffer, byteOffset, size) : Buffer.allocUnsafe(size)
  const from = Buffer.from(buffer, byteOffset, bytes.byteLength)
  for (const span of isWithin ? inSafeOrder(spans) : spans) {
    const { start, end, at } = span
    const backwards = at > start
    for (let done = 0; done < end - start; ) {
      const part = Math.min(COPY_BYTES, end - start - done)
      const offset = backwards ? end - start - done - part : done
      from.copy(into, at + offset, start + offset, start + offset + part)
      done += part
      if (part === COPY_BYTES && pause.isDue()) await pause.now()
    }
  }
  edits.forEach((edit, index) => {
    const { start, end, at } = spans[index] as Span
    if (edit.bytes !== undefined) into.set(edit.bytes, at + end - start)
  })
  return into
}

/** What stays, and where it will be. */
interface Span {
  readonly start: number
  readonly end: number
  readonly at: number
}

/** One before each edit and one after the last. */
function keptSpans(edits: readonly Edit[], length: number): Span[] {
  const spans: Span[] = []
  let start = 0
  let at = 0
  for (const edit of edits) {
    spans.push({ start, end: edit.start, at })
    at += edit.start - start + (edit.bytes?.length ?? 0)
    start = edit.end
  }
  spans.push({ start, end: length, at })
  return spans
}

/** In one memory, what moves towards the start goes first, and what moves towards the end follows from its end. */
function inSafeOrder(spans: readonly Span[]): Span[] {
  const back = spans.filter(({ start, at }) => at < start)
  const forth = spans.filter(({ start, at }) => at > start)
  return [...back, ...forth.reverse()]
}

interface Pauses {
  isDue(): boolean
  now(): Promise<void>
}

function pauses(signal: AbortSignal | undefined): Pauses {
  let sinceMs = performance.now()
  return {
    isDue: () => performance.now() - sinceMs > PIECE_MS,
    now: async () => {
      await letOthersRun()
      signal?.throwIfAborted()
      sinceMs = performance.now()
    },
  }
}
