/** The time that a runtime lives by. A test may hold another one, which stands until it is moved. */
export interface RuntimeClock {
  /** Milliseconds that only grow; on the clock of `performance.now()` for the real one. */
  now(): number
  /** Runs `task` once, `ms` milliseconds from now. Returns what calls it off. `idle` keeps no process alive. */
  after(ms: number, task: () => void, options?: { readonly idle?: boolean }): () => void
}

/** The machine's own clock. */
export const realClock: RuntimeClock = {
  now: () => performance.now(),
  after(ms, task, { idle = false } = {}) {
    const timer = setTimeout(task, ms)
    if (idle) timer.unref()
    return () => clearTimeout(timer)
  },
}
