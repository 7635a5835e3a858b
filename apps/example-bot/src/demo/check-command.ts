import { keyFile } from '@sandbox/credential-scope/sources'
import { openBot } from '../bot.ts'
import type { Config, DriverConfig } from '../config.ts'
import { stopSignals } from '../stop-signals.ts'
import { type CheckBot, type CheckBotOptions, type CheckReport, runCheck } from './check.ts'
import type { CheckRow } from './check-row.ts'
import { checkTable } from './check-table.ts'
import { standInRoutes } from './stand-in-routes.ts'

/** What the bot says about turns that fail. */
const EXPECTED_LINES = /^(?:turn failed|what the worker said)\b/

type CheckConfig = Extract<Config, { command: 'check' }>

/** Without a terminal, progress is a line every so many rows. */
const ROWS_PER_LINE = 10

/**
 * `demo --check`: plays the check on the real bot, and prints the table, or the rows as JSON. Progress and
 * warnings go to stderr. Resolves with the exit code: 0 only when every row is as expected, 130 after Ctrl-C.
 */
export async function checkCommand(config: CheckConfig): Promise<number> {
  const off = new AbortController()
  const progress = progressLine()
  const signals = stopSignals({
    onStop: () => {
      progress.say('Stopping.')
      off.abort()
    },
    onForce: () => process.exit(130),
  })
  let report: CheckReport
  try {
    report = await runCheck({
      openBot: (options) => openCheckBot(config.where, options, progress.log),
      onRow: progress.row,
      signal: off.signal,
    })
  } catch (error) {
    if (off.signal.aborted) return 130
    throw error
  } finally {
    progress.clear()
    signals.release()
  }
  const text = config.json
    ? `${JSON.stringify(report.rows, undefined, 2)}\n`
    : checkTable(report.rows, { colour: config.colour && process.stdout.isTTY === true })
  await new Promise<void>((done) => process.stdout.write(text, () => done()))
  return report.ok ? 0 : 1
}

/** The bot as it is run. An image that was named holds our guest, so for another guest one is built. */
export function openCheckBot(
  where: DriverConfig,
  options: CheckBotOptions,
  log: (line: string) => void,
): Promise<CheckBot> {
  const { image, ...place } = where
  const { modelUrl, keysPath, initialChannels: channels, ...asked } = options
  const named = image === undefined || options.guestBundle !== undefined ? {} : { image }
  const keys = keyFile({ path: keysPath, onProblem: ({ message }) => log(message) })
  const routes = standInRoutes({ modelUrl, channels, keys })
  return openBot({ ...place, ...named, ...asked, keys, routes, log })
}

/** A line on stderr that is written over where that is possible, and the bot's own lines, each once. */
function progressLine() {
  const { stderr } = process
  const live = stderr.isTTY === true
  const told = new Set<string>()
  const clear = () => {
    if (live) stderr.write('\r\x1b[K')
  }
  const say = (line: string) => {
    clear()
    stderr.write(`${line}\n`)
  }
  return {
    clear,
    say,
    log: (line: string) => {
      // Most turns of the plan that fail must fail: the rows tell which.
      if (told.has(line) || EXPECTED_LINES.test(line)) return
      told.add(line)
      say(line)
    },
    row: (row: CheckRow, done: number, total: number) => {
      const text = `${done} of ${total} rows, last: ${row.channel} ${row.speaker} ${row.ok ? 'ok' : 'WRONG'}`
      if (live) stderr.write(`\r\x1b[K${text}`)
      else if (done % ROWS_PER_LINE === 0 || done === total || !row.ok) stderr.write(`${text}\n`)
    },
  }
}
