/** Options of {@link stopSignals}. */
export interface StopSignalsOptions {
  /** Called once, for the first signal. */
  readonly onStop: () => void
  /** Called for a later one: the person does not want to wait. */
  readonly onForce: () => void
  /** A signal within this time after the first is taken as the same one; default 300. */
  readonly sameWithinMs?: number
}

/** The way in for a Ctrl-C that a terminal reads as a key, and the way out. */
export interface StopSignals {
  /** As a signal does. */
  raise(): void
  /** Leaves the signals to their defaults again. */
  release(): void
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Turns Ctrl-C, a stop by the system and a closed terminal into one orderly stop. Package managers pass on a
 * Ctrl-C that the process got from its terminal anyway, so two in a row are one.
 */
export function stopSignals(options: StopSignalsOptions): StopSignals {
  let firstAt: number | undefined
  const raise = (): void => {
    if (firstAt === undefined) {
      firstAt = performance.now()
      options.onStop()
    } else if (performance.now() - firstAt > (options.sameWithinMs ?? 300)) {
      options.onForce()
    }
  }
  for (const signal of SIGNALS) process.on(signal, raise)
  return {
    raise,
    release: () => {
      for (const signal of SIGNALS) process.off(signal, raise)
    },
  }
}
