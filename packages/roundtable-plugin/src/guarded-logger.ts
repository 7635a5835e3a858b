import type { HostLogger } from './host-contract.ts'
import { quietly } from './quietly.ts'

/** The same logger, but one whose faults nobody notices: a line that cannot be written must not end a turn. */
export function guardedLogger(logger: HostLogger): HostLogger {
  const at = (level: keyof HostLogger) => (fields: object, message: string) => {
    quietly(() => logger[level](fields, message))
  }
  return { info: at('info'), warn: at('warn'), error: at('error') }
}
