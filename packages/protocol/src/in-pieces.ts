import { setImmediate as letOthersRun } from 'node:timers/promises'
import type { Pieces } from './files.ts'

/** Work of one piece, about: others run in between. */
const PIECE_MS = 5

/** Does the work and lets others run every few milliseconds. Rejects with the signal's reason, and as the work does. */
export async function inPieces<T>(work: Pieces<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  for (let sinceMs = performance.now(); ; ) {
    const step = work.next()
    if (step.done === true) return step.value
    if (performance.now() - sinceMs < PIECE_MS) continue
    await letOthersRun()
    signal.throwIfAborted()
    sinceMs = performance.now()
  }
}
