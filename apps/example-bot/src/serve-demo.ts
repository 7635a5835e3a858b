import { fingerprintOf } from '@sandbox/credential-scope'
import { keyFile } from '@sandbox/credential-scope/sources'
import type { ChannelKey } from '@sandbox/roundtable-plugin'
import { openBot } from './bot.ts'
import { chooseDriver, type DriverPlace } from './choose-driver.ts'
import { clockTool } from './clock-tool.ts'
import type { Config } from './config.ts'
import { startStandIn } from './demo/stand-in-model.ts'
import { DEMO_CHANNELS } from './demo-channels.ts'
import { writeDemoKeys } from './keys/demo-keys.ts'
import { Ledger } from './ledger.ts'
import { openStateDir } from './state-dir.ts'
import { stopSignals } from './stop-signals.ts'
import { Room } from './surfaces/room.ts'
import { openTerminal, type Terminal } from './surfaces/terminal/terminal.ts'
import { openWebPage } from './surfaces/web/web-page.ts'

type ServeConfig = Extract<Config, { command: 'serve' }>

/**
 * Runs the demo until it is told to stop: keys, stand-in model service, bot, page, and the terminal when a
 * person sits there. What was started is ended in reverse, also when something could not be started.
 */
export async function serveDemo(config: ServeConfig): Promise<void> {
  const off = new AbortController()
  const ends: (() => unknown)[] = []
  let terminal: Terminal | undefined
  const log = (line: string): void => {
    if (terminal === undefined) process.stdout.write(`${line}\n`)
    else terminal.print(line)
  }
  const signals = stopSignals({
    onStop: () => {
      terminal?.close()
      terminal = undefined
      log('Stopping. Again to stop at once, which may leave a container for the next start to remove.')
      off.abort()
    },
    onForce: () => process.exit(130),
  })
  try {
    const demo = await start(config, { log, signal: off.signal, ends })
    if (process.stdin.isTTY) {
      terminal = openTerminal({
        ...demo.views,
        onQuit: signals.raise,
        input: process.stdin,
        output: process.stdout,
        interactive: true,
        colours: config.colour && process.stdout.isTTY,
      })
    }
    await aborted(off.signal)
  } catch (error) {
    if (!off.signal.aborted) throw error
  } finally {
    await endAll(ends, log)
    signals.release()
  }
  log('Stopped.')
}

interface Surroundings {
  readonly log: (line: string) => void
  readonly signal: AbortSignal
  /** What undoes what was started, in order. */
  readonly ends: (() => unknown)[]
}

async function start(config: ServeConfig, { log, signal, ends }: Surroundings) {
  const state = openStateDir(config.stateDir === undefined ? {} : { path: config.stateDir })
  const { path: keysPath, keys } = writeDemoKeys({ dir: state.keysDir })
  const { explain, check } = keyFile({ path: keysPath })
  check()
  const place = await chooseDriver({ ...config.where, signal })
  signal.throwIfAborted()
  const service = await startStandIn({ keys: keys.map(({ key }) => key), fingerprint: fingerprintOf })
  ends.push(() => service.close())

  const ledger = new Ledger({ explain })
  const room = new Room({
    prefix: 'demo',
    channels: DEMO_CHANNELS,
    turnOf: (channel) => ledger.latest(channel)?.turnId,
  })
  const bot = await openBot({
    ...config.where,
    driver: place.kind,
    stateDir: state.path,
    modelUrl: service.url,
    allowHttp: true,
    keysPath,
    initialChannels: DEMO_CHANNELS.map(({ key }) => key),
    surfaces: [room],
    tools: [clockTool({ timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone })],
    onCall: ledger.onCall,
    onTurn: ledger.onTurn,
    log,
    signal,
  })
  ends.push(() => bot.close())

  const stop = (channel: string): boolean => bot.host.conversations.stop(channel as ChannelKey)
  const views = { room, ledger, explain, stop }
  const driver = { kind: bot.driverKind, isolation: bot.isolation }
  const page = await openWebPage({ ...views, driver, port: config.port })
  ends.push(() => page.close())
  log(welcome(page.address, place, keysPath))
  return { views }
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

function welcome(address: string, place: DriverPlace, keysPath: string): string {
  const driver = place.kind === 'docker' ? 'a sealed container for every turn' : 'plain processes, NO sandbox'
  return [
    '',
    `  page    ${address}`,
    `  driver  ${driver}`,
    `  keys    ${keysPath} (a change is used by the next call)`,
    '  stop    Ctrl-C',
    '',
  ].join('\n')
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done()
    else signal.addEventListener('abort', () => done(), { once: true })
  })
}
