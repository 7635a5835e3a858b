import { fileURLToPath } from 'node:url'
import type { CallEvent, HostTool } from '@sandbox/broker'
import { fingerprintOf } from '@sandbox/credential-scope'
import type { ChannelKey, ChatSurface, TurnEvent } from '@sandbox/roundtable-plugin'
import { CheckKeys } from './check-keys.ts'
import { CHECK_CHANNELS, type CheckStage, checkPlan } from './check-plan.ts'
import { CheckRoom } from './check-room.ts'
import { type CheckRow, checkRow, markOf, restRow } from './check-row.ts'
import { claimCheckState } from './check-state.ts'
import type { CheckStep } from './check-step.ts'
import { HOSTILE_GUEST } from './hostile-attempts.ts'
import { type StandIn, startStandIn } from './stand-in-model.ts'

/** What the check asks of a bot, besides what its caller decides: driver, image, engine. */
export interface CheckBotOptions {
  readonly stateDir: string
  /** Absolute path of a program to run in place of our guest. */
  readonly guestBundle?: string
  readonly modelUrl: string
  /** The model service is on loopback, without TLS. */
  readonly allowHttp: true
  readonly keysPath: string
  readonly initialChannels: readonly ChannelKey[]
  readonly surfaces: readonly ChatSurface[]
  readonly tools: readonly HostTool[]
  readonly onCall: (event: CallEvent) => void
  readonly onTurn: (event: TurnEvent) => void
  readonly signal?: AbortSignal
}

/** A running bot, as far as the check needs it. */
export interface CheckBot {
  readonly driverKind: 'docker' | 'process'
  readonly isolation: 'container' | 'none'
  close(): Promise<void>
}

/** Options of {@link runCheck}. */
export interface CheckOptions {
  /** Opens the real product. Called once per stage, one after the other. */
  openBot(options: CheckBotOptions): Promise<CheckBot>
  /** A fresh directory is made in here; short, since sockets live below it. Default: the system's own. */
  readonly parentDir?: string
  /** How often two speakers of one channel take turns. Default 20. */
  readonly rounds?: number
  /** Called with every row when it is known: not in order. */
  onRow?(row: CheckRow, done: number, total: number): void
  /** Ends the check early: it rejects with the reason, once everything is closed and removed. */
  readonly signal?: AbortSignal
}

/** What the check found. */
export interface CheckReport {
  /** In the order of the plan, the row about the rest last. */
  readonly rows: readonly CheckRow[]
  /** True only when every row is as expected. */
  readonly ok: boolean
}

interface Surroundings {
  readonly options: CheckOptions
  readonly stateDir: string
  readonly keys: CheckKeys
  readonly service: StandIn
}

/**
 * Plays a script on the real product without a person: two channels, two speakers of one channel, channels and
 * speakers without a key, keys that change, hostile text and a hostile program in the worker. Who paid is taken
 * from what the model service saw, never from what a guest says.
 *
 * Rejects when the bot cannot be opened; leaves no file and no worker behind, whatever happens.
 */
export async function runCheck(options: CheckOptions): Promise<CheckReport> {
  const { state, release } = claimCheckState(options.parentDir)
  let service: StandIn | undefined
  try {
    const keys = new CheckKeys(state.keysDir)
    const known = keys.tokens().filter((token) => token !== keys.token('unknown'))
    service = await startStandIn({ keys: known, fingerprint: fingerprintOf })
    const rows = await playAll({ options, stateDir: state.path, keys, service })
    return { rows, ok: rows.every(({ ok }) => ok) }
  } finally {
    await service?.close()
    release()
  }
}

async function playAll(at: Surroundings): Promise<readonly CheckRow[]> {
  const { options, service, keys } = at
  const rows: CheckRow[] = []
  let plan = planFor(at, false)
  const total = plan.flatMap(stepsOf).length + 1
  let driver = '-'
  for (let index = 0; index < plan.length; index += 1) {
    const guest = plan[index]?.guest ?? 'ours'
    const room = new CheckRoom()
    const bot = await options.openBot(botOptions(at, room, guest))
    try {
      driver = bot.driverKind
      const container = bot.isolation === 'container'
      plan = planFor(at, container)
      const numbers = new Map(plan.flatMap(stepsOf).map((step, n) => [step.mark, n + 1]))
      await playStage(plan[index] as CheckStage, options.signal, async (step) => {
        step.before?.(keys)
        const trace = await room.say({ channel: step.channel, speaker: step.speaker, text: step.text })
        const row = checkRow({
          turn: numbers.get(step.mark) ?? 0,
          step,
          trace,
          service: service.calls.filter((call) => markOf(call) === step.mark),
          driver: bot.driverKind,
          container,
          keyExpected: step.key === undefined ? undefined : fingerprintOf(keys.token(step.key)),
          secrets: keys.tokens(),
        })
        rows.push(row)
        options.onRow?.(row, rows.length, total)
      })
    } finally {
      await bot.close()
    }
  }
  const marks = new Set(plan.flatMap(stepsOf).map(({ mark }) => mark))
  const rest = restRow({ service: service.calls, marks, driver, secrets: keys.tokens() })
  options.onRow?.(rest, total, total)
  return [...rows.sort((one, other) => one.turn - other.turn), rest]
}

function planFor({ options, service, keys }: Surroundings, container: boolean): readonly CheckStage[] {
  const { rounds } = options
  const where = { modelUrl: service.url, keysPath: keys.path, container }
  return checkPlan({ ...where, ...(rounds === undefined ? {} : { rounds }) })
}

function botOptions(at: Surroundings, room: CheckRoom, guest: CheckStage['guest']): CheckBotOptions {
  return {
    stateDir: at.stateDir,
    ...(guest === 'hostile' ? { guestBundle: fileURLToPath(HOSTILE_GUEST) } : {}),
    modelUrl: at.service.url,
    allowHttp: true,
    keysPath: at.keys.path,
    initialChannels: CHECK_CHANNELS,
    surfaces: [room],
    tools: [room.clock],
    onCall: room.onCall,
    onTurn: room.onTurn,
    ...(at.options.signal === undefined ? {} : { signal: at.options.signal }),
  }
}

async function playStage(
  stage: CheckStage,
  signal: AbortSignal | undefined,
  play: (step: CheckStep) => Promise<void>,
): Promise<void> {
  for (const chains of stage.parts) {
    await Promise.all(
      chains.map(async (groups) => {
        for (const group of groups) {
          signal?.throwIfAborted()
          await Promise.all(group.map(play))
        }
      }),
    )
  }
}

function stepsOf(stage: CheckStage): readonly CheckStep[] {
  return stage.parts.flat(3)
}
