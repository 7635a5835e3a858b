import type { KeyFile } from '@sandbox/credential-scope/sources'
import type { ChannelKey } from '@sandbox/roundtable-plugin'
import { textLog } from '../src/operator/log.ts'
import { Routes } from '../src/operator/routes.ts'
import { startBot } from '../src/start-bot.ts'

const CHANNEL: ChannelKey = 'room:lobby'
const ANN = { id: 'u-ann', name: 'Ann' }

/** A bot in this process with one sealed channel, `room:lobby`, where Ann speaks. */
export interface RoomBot extends AsyncDisposable {
  /** Says something as Ann, and waits for the answer. */
  ask(text: string): Promise<string | undefined>
  /** Everything it printed so far. */
  output(): string
}

/** Starts a bot for what no configuration can say: another guest program, or a login service of a test. */
export async function startRoomBot(options: {
  readonly stateDir: string
  /** Base URL of a service on loopback that speaks Chat Completions. */
  readonly modelUrl: string
  readonly keys: KeyFile
  readonly guestBundle?: string
}): Promise<RoomBot> {
  const { modelUrl, keys, ...rest } = options
  const own = { api: 'openai', url: modelUrl, model: 'm', allowHttp: true } as const
  const printed: string[] = []
  const started = await startBot({
    ...rest,
    driver: 'process',
    keys,
    routes: new Routes({ providers: { own }, channels: { [CHANNEL]: { mode: 'sealed' } } }, keys),
    allowHttp: true,
    room: { prefix: 'room', channels: [{ key: CHANNEL, title: 'lobby', about: '', speakers: [ANN] }] },
    log: textLog((line) => printed.push(line)),
  })
  return {
    ask: async (text) => {
      await started.views?.room.ask({ channel: CHANNEL, speakerId: ANN.id, text })
      return started.views?.room.entries().at(-1)?.text
    },
    output: () => printed.join('\n'),
    [Symbol.asyncDispose]: () => started.close(),
  }
}
