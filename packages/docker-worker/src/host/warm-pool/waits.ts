import { setTimeout as pause } from 'node:timers/promises'
import { stopIfAborted } from '../../errors.ts'
import type { Worker } from '../driver.ts'

const LONGEST_RETRY_MS = 60_000

/** How long to wait after the n-th failure in a row: doubles, up to a minute. */
export function backoffMs(firstMs: number, failures: number): number {
  return Math.min(LONGEST_RETRY_MS, firstMs * 2 ** Math.min(20, failures - 1))
}

/** Waits for `work` no longer than until the signal fires; then rejects with `aborted`, and `work` goes on unseen. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  // Whatever comes of it later is nobody's, also when nobody waits for it from the start.
  work.catch(() => {})
  stopIfAborted(signal)
  if (signal === undefined) return work
  let stop = () => {}
  const end = new Promise<void>((resolve) => {
    stop = resolve
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    const first = await Promise.race([work, end])
    stopIfAborted(signal)
    return first as T
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Resolves when a worker cannot run any more. One that nobody can tell of is killed until that is sure. */
export async function dead(worker: Worker, retryMs: number): Promise<void> {
  if ((await worker.exited).reason !== 'lost') return
  for (;;) {
    try {
      return await worker.remove()
    } catch {
      await pause(retryMs, undefined, { ref: false })
    }
  }
}
