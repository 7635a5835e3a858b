import { setImmediate as letOthersRun } from 'node:timers/promises'

/** How much text is worked on between two looks at the clock. */
export const PIECE_BYTES = 64 * 1024
/** Work of one piece, about: others run in between. */
const PIECE_MS = 5

/** Work that can be interrupted wherever it yields. */
export type Pieces<T> = Generator<undefined, T, undefined>

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

/** Does the work in one go. For what is known to be small. */
export function atOnce<T>(work: Pieces<T>): T {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}
