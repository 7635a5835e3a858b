import { redact } from '@sandbox/credential-scope'
import type { HostLogger } from '@sandbox/roundtable-plugin'
import { plain } from '../plain-text.ts'
import { redactedJson } from '../redacted-json.ts'

/** Where the bot writes what happens. No secrets and no content. */
export interface BotLog {
  /** One line for people. */
  line(text: string): void
  /** The host's lines. Some of their words come from a worker, so none is obeyed. */
  readonly logger: HostLogger
}

/** Lines for people. */
export function textLog(print: (line: string) => void): BotLog {
  const line = (fields: object, message: string): void => {
    const about = Object.entries(fields).map(([name, value]) =>
      name === 'err' ? String((value as Error | undefined)?.message) : `${name} ${words(value)}`,
    )
    print(plain(redact(about.length === 0 ? message : `${message}: ${about.join(', ')}`)))
  }
  return { line: print, logger: { info: () => {}, warn: line, error: line } }
}

/** One JSON object per line: `time`, `level`, `message`, and what the message is about. */
export function jsonLog(print: (line: string) => void, now: () => Date = () => new Date()): BotLog {
  const write = (level: string) => (fields: object, message: string) => {
    const about = Object.entries(fields).map(([name, value]) => [name, shown(value)])
    const line = { time: now().toISOString(), level, message, ...Object.fromEntries(about) }
    print(redactedJson(line))
  }
  const logger = { info: write('info'), warn: write('warn'), error: write('error') }
  const line = (text: string) => {
    const warning = /^WARNING: (.*)$/s.exec(text)?.[1]
    if (warning === undefined) logger.info({}, text.trim())
    else logger.warn({}, warning)
  }
  return { line, logger }
}

function shown(value: unknown): unknown {
  return value instanceof Error ? value.message : value
}

function words(value: unknown): string {
  return typeof value === 'string' ? value : redactedJson(value)
}
