import { join } from 'node:path'
import { fingerprintOf } from '@sandbox/credential-scope'
import { keyFile } from '@sandbox/credential-scope/sources'
import { chooseDriver, type DriverPlace } from './choose-driver.ts'
import type { Config } from './config.ts'
import { startStandIn } from './demo/stand-in-model.ts'
import { standInRoutes } from './demo/stand-in-routes.ts'
import { DEMO_CHANNELS } from './demo-channels.ts'
import { writeDemoKeys } from './keys/demo-keys.ts'
import { watchKeys } from './keys/watch-keys.ts'
import { readPrices } from './prices.ts'
import { type Surroundings, serve } from './serve.ts'
import { type RoomViews, startBot } from './start-bot.ts'
import { openStateDir } from './state-dir.ts'

type DemoConfig = Extract<Config, { command: 'serve' }>

/**
 * Runs the demo until it is told to stop: keys, stand-in model service, bot, page, and the terminal when a person
 * sits there, or lines of JSON.
 */
export function serveDemo(config: DemoConfig): Promise<void> {
  const { colour, json } = config
  return serve({ start: (around) => start(config, around), colour, terminal: true, json })
}

async function start(
  config: DemoConfig,
  { log, signal, ends }: Surroundings,
): Promise<{ views?: RoomViews }> {
  const state = openStateDir(config.stateDir === undefined ? {} : { path: config.stateDir })
  const { path: keysPath, keys: tokens } = writeDemoKeys({ dir: state.keysDir })
  const keys = keyFile({ path: keysPath, onProblem: ({ message }) => log.line(message) })
  keys.check()
  const place = await chooseDriver({ ...config.where, signal })
  signal.throwIfAborted()
  const service = await startStandIn({ keys: tokens.map(({ key }) => key), fingerprint: fingerprintOf })
  ends.push(() => service.close())
  ends.push(watchKeys({ keys, onGone: log.line }))
  const started = await startBot({
    ...config.where,
    driver: place.kind,
    stateDir: state.path,
    keys,
    routes: standInRoutes({ modelUrl: service.url, keys, channels: DEMO_CHANNELS.map(({ key }) => key) }),
    allowHttp: true,
    room: { prefix: 'demo', channels: DEMO_CHANNELS },
    page: { port: config.port },
    prices: readPrices(join(state.path, 'prices.json')),
    log,
    signal,
  })
  ends.push(() => started.close())
  log.line(welcome(started.page?.address ?? '', place, keysPath))
  return { ...(started.views && { views: started.views }) }
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
