import type { HostLogger } from './host-contract.ts'

/** The same logger, but one whose faults nobody notices: a line that cannot be written must not end a turn. */
export function guardedLogger(logger: HostLogger): HostLogger {
  const at = (level: keyof HostLogger) => (fields: object, message: string) => {
    try {
      const written: unknown = logger[level](fields, message)
      if (written instanceof Promise) written.catch(() => {})
    } catch {
      // There is nobody else to tell.
    }
  }
  return { info: at('info'), warn: at('warn'), error: at('error') }
}
