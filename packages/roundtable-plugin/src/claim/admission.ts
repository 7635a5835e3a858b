import { errorText } from '../error-text.ts'
import type { HostLogger, TurnAdmission } from '../host-contract.ts'

/** Who hears of a message that cannot be read. */
export interface ReadingParts {
  readonly logger: HostLogger
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
}

/** What `admit` says of a message; `undefined` for one that cannot be read. A claim must not throw into its host. */
export function admitReadable(
  { logger, scrub }: ReadingParts,
  admit: () => TurnAdmission | undefined,
): TurnAdmission | undefined {
  try {
    return admit()
  } catch (error) {
    logger.warn({ cause: scrub(errorText(error)) }, 'a message could not be read, and was not taken')
    return undefined
  }
}

/**
 * The admission of a message. It is answered once, also for a host that runs it twice: somebody pays for it. `done` is
 * called when the turn is over, or when the host says that it drops the message.
 */
export function turnAdmission(run: () => Promise<void>, done: () => void = () => {}): TurnAdmission {
  let running: Promise<void> | undefined
  return {
    kind: 'turn',
    failure: 'a sandbox turn failed outside its runtime',
    run() {
      running ??= run().finally(done)
      return running
    },
    dropped: done,
  }
}
