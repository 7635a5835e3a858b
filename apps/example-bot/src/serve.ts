import { BotError } from './errors.ts'
import { type BotLog, textLog } from './operator/log.ts'
import type { RoomViews } from './start-bot.ts'
import { stopSignals } from './stop-signals.ts'
import { type JsonLines, openJsonLines } from './surfaces/terminal/json-lines.ts'
import { openTerminal, type Terminal } from './surfaces/terminal/terminal.ts'

/** What {@link serve} gives to what it runs. */
export interface Surroundings {
  readonly log: BotLog
  /** Fires when the bot is to stop. */
  readonly signal: AbortSignal
  /** What undoes what was started, in order. */
  readonly ends: (() => unknown)[]
}

/** Options of {@link serve}. */
export interface ServeOptions {
  /** Starts everything; resolves when it runs, with what the terminal shows. */
  readonly start: (surroundings: Surroundings) => Promise<{ readonly views?: RoomViews }>
  readonly colour: boolean
  /** Opens the terminal when a person sits there. */
  readonly terminal: boolean
  /** Takes messages from stdin and tells what happens on stdout, as lines of JSON; what is logged goes to stderr. */
  readonly json: boolean
  /** Makes the log out of a way to print a line; left out, lines for people. */
  readonly makeLog?: (print: (line: string) => void) => BotLog
  /** What is told when the stop begins. */
  readonly stopWords?: string
}

/**
 * Runs something until it is told to stop. What was started is ended in reverse, also when something could not be
 * started.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { makeLog = textLog, stopWords } = options
  const off = new AbortController()
  const ends: (() => unknown)[] = []
  let terminal: Terminal | undefined
  let lines: JsonLines | undefined
  const log = makeLog((line) => {
    if (terminal === undefined) (options.json ? process.stderr : process.stdout).write(`${line}\n`)
    else terminal.print(line)
  })
  const signals = stopSignals({
    onStop: () => {
      terminal?.close()
      terminal = undefined
      lines?.close()
      log.line(
        stopWords ??
          'Stopping. Again to stop at once, which may leave a container for the next start to remove.',
      )
      off.abort()
    },
    onForce: () => process.exit(130),
  })
  try {
    const { views } = await options.start({ log, signal: off.signal, ends })
    if (options.json) lines = openLines(views, signals.raise)
    else if (views !== undefined && options.terminal && process.stdin.isTTY) {
      terminal = openTerminal({
        ...views,
        onQuit: signals.raise,
        input: process.stdin,
        output: process.stdout,
        interactive: process.stdout.isTTY,
        colours: options.colour && process.stdout.isTTY,
      })
    }
    await aborted(off.signal)
  } catch (error) {
    if (!off.signal.aborted) throw error
  } finally {
    await endAll(ends, log.line)
    signals.release()
  }
  log.line('Stopped.')
}

function openLines(views: RoomViews | undefined, onQuit: () => void): JsonLines {
  if (views === undefined) {
    throw new BotError(
      'usage',
      '--json is for the channels of the page and the terminal, and there are none.',
    )
  }
  const { room, ledger } = views
  return openJsonLines({
    room,
    ledger,
    input: process.stdin,
    output: process.stdout,
    onEnd: (failed) => {
      if (failed) process.exitCode = 1
      onQuit()
    },
  })
}

/** Ends everything, in reverse, and goes on when one thing cannot be ended. */
async function endAll(ends: (() => unknown)[], log: (line: string) => void): Promise<void> {
  for (const end of ends.reverse()) {
    try {
      await end()
    } catch (error) {
      log(error instanceof Error ? error.message : String(error))
      process.exitCode = 1
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    else signal.addEventListener('abort', () => done(), { once: true })
  })
}
