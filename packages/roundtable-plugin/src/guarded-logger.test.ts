import { expect, test } from 'vitest'
import { guardedLogger } from './guarded-logger.ts'
import type { HostLogger } from './host-contract.ts'

/** As pino does, it needs itself to write. */
class OwnLogger implements HostLogger {
  readonly lines: string[] = []

  info(fields: object, message: string): void {
    this.lines.push(`info ${message} ${JSON.stringify(fields)}`)
  }

  warn(): void {
    throw new TypeError(`no ${this.lines.length}`)
  }

  async error(): Promise<void> {
    throw new TypeError(`no ${this.lines.length}`)
  }
}

test('trap 11.14 a logger is called as what it is, and its faults are nobody’s', () => {
  const own = new OwnLogger()
  const logger = guardedLogger(own)
  logger.warn({}, 'lost')
  logger.error({}, 'lost')
  logger.info({ n: 1 }, 'kept')
  expect(own.lines).toEqual(['info kept {"n":1}'])
})
