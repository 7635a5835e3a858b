import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { chooseDriver, engineProblem } from '../choose-driver.ts'
import { BotError } from '../errors.ts'
import { keysCheck } from '../keys/keys-command.ts'
import { readPrices } from '../prices.ts'
import { openStateDir } from '../state-dir.ts'
import { tryDiscord } from '../surfaces/discord/try-discord.ts'
import { AuditLog } from './audit-log.ts'
import { openKeys } from './open-keys.ts'
import { type OperatorConfig, readBotFile } from './read-bot-file.ts'
import { readReference } from './reference.ts'
import { Routes } from './routes.ts'
import { sampleScopes } from './sample-scopes.ts'
import { withEngine } from './serve-bot.ts'
import { tryProvider } from './try-provider.ts'
import { tryWorker } from './try-worker.ts'

/** One thing that was tried. */
export interface DoctorRow {
  readonly id: string
  readonly state: 'ok' | 'failed' | 'skipped'
  readonly found: string
  /** What to do. Present when it failed. */
  readonly mend?: string
}

/** Options of {@link doctor}. */
export interface DoctorOptions {
  /** Of the configuration. */
  readonly path: string
  /** The engine of the environment, where the configuration names none. */
  readonly engineSocket?: string
  /** Also spends one token at each provider. */
  readonly call: boolean
  readonly onRow?: (row: DoctorRow) => void
}

interface Check {
  readonly id: string
  /** Checks without which it cannot be tried. */
  readonly needs?: readonly string[]
  /** Returns what was found; throws what is wrong. */
  readonly run: () => Promise<string> | string
  readonly mend: string
}

/** Longest path of the directory that holds sockets, by mode: a socket's own path has at most 107 bytes. */
const ROOT_BYTES = { sealed: 77, pi: 66 } as const

/** Tries everything that the bot of a configuration needs. Never rejects for what it finds; leaves no worker behind. */
export async function doctor(options: DoctorOptions): Promise<readonly DoctorRow[]> {
  const rows: DoctorRow[] = []
  const tell = (row: DoctorRow) => {
    rows.push(row)
    options.onRow?.(row)
  }
  let config: OperatorConfig
  try {
    config = withEngine(readBotFile(options.path), options.engineSocket)
  } catch (error) {
    tell({
      id: 'config',
      state: 'failed',
      found: (error as Error).message,
      mend: 'Mend the lines, or make a configuration with: bot init',
    })
    return rows
  }
  tell({ id: 'config', state: 'ok', found: options.path })
  for (const check of checksOf(config, options.call)) {
    const missing = check.needs?.find((id) => rows.some((row) => row.id === id && row.state !== 'ok'))
    if (missing === undefined) tell(await tried(check))
    else tell({ id: check.id, state: 'skipped', found: `not tried: it needs ${missing}` })
  }
  return rows
}

async function tried({ id, run, mend }: Check): Promise<DoctorRow> {
  try {
    return { id, state: 'ok', found: await run() }
  } catch (error) {
    return { id, state: 'failed', found: (error as Error).message, mend }
  }
}

function checksOf(config: OperatorConfig, call: boolean): readonly Check[] {
  const { workers, providers = {} } = config
  const keys = openKeys(config)
  // Nothing is sent through it: a call is tried at the provider itself.
  const gateway = { urlOf: () => 'http://127.0.0.1', keys }
  const routes = new Routes({ providers, channels: config.channels }, keys, gateway)
  const modes = (['sealed', 'pi'] as const).filter((mode) => routes.uses(mode))
  const container = (workers?.driver ?? 'docker') === 'docker'
  return [
    { id: 'account', run: account, mend: 'Run the bot under an account of its own.' },
    {
      id: 'state',
      run: () => stateOf(config, modes),
      mend: 'Name a private directory of this account, with a short path, in "stateDir".',
    },
    {
      id: 'keys',
      run: () => keysCheck({ keys, path: config.keys }),
      mend: `Mend the lines of ${config.keys}; docs/keys.md says what may stand there.`,
    },
    {
      id: 'routes',
      needs: ['keys'],
      run: () => routesOf(config, routes, keys),
      mend: 'Give the rule or the channel a provider that its mode can use.',
    },
    {
      id: 'engine',
      run: () => engineOf(config),
      mend: container
        ? 'Start Docker and put this account into the group of its socket (often "docker"); docs/operators.md says how.'
        : 'Leave "driver" out for containers.',
    },
    ...modes.map((mode) => ({
      id: `worker-${mode}`,
      needs: ['engine'],
      run: () => tryWorker(config, mode),
      mend: `For every wall by itself: sandbox-worker doctor. To build anew: sandbox-worker build${mode === 'pi' ? ' --pi' : ''}.`,
    })),
    ...Object.keys(providers).map((name) => ({
      id: `provider ${name}`,
      ...(call ? { needs: ['keys', 'routes'] } : {}),
      run: () => tryProvider({ name, config, routes, keys, call }),
      mend: 'Look at "url", "model" and "auth" of the provider, at the key, and at the firewall of this machine.',
    })),
    ...placeChecks(config),
  ]
}

/** Ports, secrets and files that the configuration names. */
function placeChecks(config: OperatorConfig): readonly Check[] {
  const { surfaces, monitor, prices, audit } = config
  const ports = [
    { id: 'page', at: surfaces.web },
    { id: 'monitor', at: monitor },
  ]
  return [
    ...ports.flatMap(({ id, at }) =>
      at === undefined
        ? []
        : [{ id, run: () => portOf(at), mend: 'Choose another port, or stop the bot that has it.' }],
    ),
    ...secretChecks(config),
    ...(prices === undefined
      ? []
      : [
          {
            id: 'prices',
            run: () => `${Object.keys(readPrices(prices).models).length} prices`,
            mend: 'Mend it.',
          },
        ]),
    ...(audit === undefined
      ? []
      : [{ id: 'audit', run: () => auditOf(audit), mend: 'Give the directory to this account, mode 0700.' }]),
  ]
}

function secretChecks({ path, surfaces: { web, discord } }: OperatorConfig): readonly Check[] {
  const directory = dirname(path)
  const read = (reference: string, setting: string) => readReference(reference, { setting, directory })
  const mend = (setting: string) => `Set what ${setting} names; a file needs mode 0600.`
  const checks: Check[] = []
  if (web?.token !== undefined) {
    const { token } = web
    const run = async () => {
      await read(token, 'surfaces.web.token')
      return `${token} leads to a token`
    }
    checks.push({ id: 'page-token', run, mend: mend('surfaces.web.token') })
  }
  if (discord !== undefined) {
    const { token, api } = discord
    const run = async () =>
      tryDiscord({ token: await read(token, 'surfaces.discord.token'), ...(api !== undefined && { api }) })
    const steps = 'The steps stand in the README of apps/example-bot, under Discord.'
    checks.push({ id: 'discord', run, mend: `${mend('surfaces.discord.token')} ${steps}` })
  }
  return checks
}

function account(): string {
  const uid = process.getuid?.()
  if (uid === 0) return 'root: workers run as uid 64200; an account of its own is better'
  return `uid ${uid ?? 'unknown'}, not root`
}

function stateOf({ stateDir }: OperatorConfig, modes: readonly ('sealed' | 'pi')[]): string {
  const state = openStateDir({ path: stateDir })
  for (const mode of modes) {
    const root = mode === 'pi' ? state.partyDir : state.runRoot
    const bytes = Buffer.byteLength(root)
    if (bytes > ROOT_BYTES[mode]) {
      const sentence = `${root} has ${bytes} bytes; sockets below it need at most ${ROOT_BYTES[mode]}`
      throw new BotError('state_dir', sentence)
    }
  }
  return `${stateDir}, private`
}

function routesOf(config: OperatorConfig, routes: Routes, keys: ReturnType<typeof openKeys>): string {
  if (config.providers === undefined) return 'the stand-in answers everywhere'
  const used = sampleScopes(keys.rules(), config).map((scope) => routes.routeOf(scope))
  const uses = new Set(used.map(({ provider, model }) => `${provider} (${model})`))
  return uses.size === 0
    ? 'no rule is for a channel of the configuration'
    : `keys lead to ${[...uses].join(', ')}`
}

async function engineOf({ workers = {} }: OperatorConfig): Promise<string> {
  if (workers.driver === 'process') return 'none wanted: workers are plain processes, NO sandbox'
  const problem = await engineProblem(workers.engineSocket)
  if (problem !== undefined) throw new BotError('engine', problem)
  const place = await chooseDriver({ driver: 'docker', ...workers })
  return place.kind === 'docker' ? `answers at ${place.engineSocket}` : 'none'
}

function portOf({ port, listenOn = '127.0.0.1' }: { port: number; listenOn?: string }): Promise<string> {
  return new Promise((done, fail) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) =>
      fail(
        new BotError(
          'page',
          `port ${port} of ${listenOn} cannot be had (${error.code}); does the bot run already?`,
        ),
      ),
    )
    server.listen({ port, host: listenOn }, () =>
      server.close(() => done(`port ${port} of ${listenOn} is free`)),
    )
  })
}

function auditOf(audit: NonNullable<OperatorConfig['audit']>): string {
  new AuditLog({ ...audit, onProblem: () => {} }).close()
  return `${audit.path}${audit.content === true ? ', WITH what people say' : ', without content'}`
}
