import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fingerprintOf } from '@sandbox/credential-scope'
import { keyFile } from '@sandbox/credential-scope/sources'
import type { DriverConfig } from '../../src/config.ts'
import { startStandIn } from '../../src/demo/stand-in-model.ts'
import { standInRoutes } from '../../src/demo/stand-in-routes.ts'
import { textLog } from '../../src/operator/log.ts'
import { type StartedBot, startBot } from '../../src/start-bot.ts'
import { freshStateDir } from '../run-demo.ts'
import { ANN, BEN, GENERAL, OLGA, OTHER, THREAD } from './people.ts'
import { openStandIn, type StandIn } from './stand-in.ts'

/** The keys of the test: one for a channel, one each for two speakers of another. */
export const KEYS = { general: 'sk-general-0123456789', ann: 'sk-ann-0123456789', ben: 'sk-ben-0123456789' }

/** A whole bot on the stand-ins of Discord and of the model service. */
export interface DiscordBot extends AsyncDisposable {
  readonly discord: StandIn
  readonly bot: StartedBot
  /** What the bot told its operator. */
  readonly lines: readonly string[]
  /** The fingerprints that paid for the last turn of a channel. */
  paid(channel: string): readonly string[]
}

/** Starts it; its general channel, another one and a thread are on, and nobody pays in the thread. */
export async function discordBot(where: DriverConfig): Promise<DiscordBot> {
  const stateDir = freshStateDir()
  const keysPath = join(stateDir, 'keys.json')
  mkdirSync(stateDir, { mode: 0o711 })
  const put = (name: string, text: string) => writeFileSync(join(stateDir, name), text, { mode: 0o600 })
  for (const [name, key] of Object.entries(KEYS)) put(`${name}.key`, key)
  const rules = [
    { channel: `discord:${GENERAL}`, key: 'file:./general.key' },
    { channel: `discord:${OTHER}`, speaker: ANN.id, key: 'file:./ann.key' },
    { channel: `discord:${OTHER}`, speaker: BEN.id, key: 'file:./ben.key' },
  ]
  put('keys.json', JSON.stringify({ rules }))
  const keys = keyFile({ path: keysPath })
  const lines: string[] = []
  const ends: (() => unknown)[] = [() => rmSync(stateDir, { recursive: true, force: true })]
  const end = async () => {
    for (const each of ends.splice(0).reverse()) await each()
  }
  try {
    const discord = await openStandIn()
    ends.push(() => discord[Symbol.asyncDispose]())
    const service = await startStandIn({ keys: Object.values(KEYS), fingerprint: fingerprintOf })
    ends.push(() => service.close())
    const channels = [GENERAL, OTHER, THREAD].map((id) => `discord:${id}`)
    const bot = await startBot({
      ...where,
      stateDir: join(stateDir, 's'),
      keys,
      routes: standInRoutes({ modelUrl: service.url, keys, channels }),
      allowHttp: true,
      discord: { token: discord.token, api: discord.api },
      ownerId: OLGA.id,
      log: textLog((line) => lines.push(line)),
    })
    ends.push(() => bot.close())
    const paid = (channel: string) =>
      (bot.ledger.latest(`discord:${channel}`)?.payments ?? []).map(({ fingerprint }) => fingerprint)
    return { discord, bot, lines, paid, [Symbol.asyncDispose]: end }
  } catch (error) {
    await end()
    throw error
  }
}
