import { setImmediate as letOthersRun } from 'node:timers/promises'
import { type Edit, editedParts, orderEdits } from '../json/json-edits.ts'
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
    bytes: edits.length === 0 ? bytes : await edited(bytes, edits, pause),
    dropped: [...walk.dropped],
    facts: {
      stream: false,
      usageAsked: false,
      outputTokens: host.maxOutputTokens,
      ...walk.facts,
    } satisfies RequestFacts,
  }
}

async function edited(bytes: Uint8Array, edits: readonly Edit[], pause: Pauses): Promise<Uint8Array> {
  const size = edits.reduce(
    (sum, one) => sum - (one.end - one.start) + (one.bytes?.length ?? 0),
    bytes.length,
  )
  const copy = new Uint8Array(size)
  let at = 0
  for (const part of editedParts(bytes, edits)) {
    for (let from = 0; from < part.length; from += COPY_BYTES) {
      const piece = part.subarray(from, from + COPY_BYTES)
      copy.set(piece, at)
      at += piece.length
      if (pause.isDue()) await pause.now()
    }
  }
  return copy
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
