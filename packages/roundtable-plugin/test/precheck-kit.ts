import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { CallEvent, McpServer } from '@sandbox/broker'
import { mcpServer } from '@sandbox/broker/mcp'
import { createProcessDriver, type Driver, type WorkerSpec } from '@sandbox/docker-worker'
import { canary, type ScriptedUpstream, scriptedUpstream } from '@sandbox/testing'
import type { DriverInstall } from '../src/options.ts'
import {
  type PrecheckRunnerOptions,
  type PrecheckScriptContext,
  precheckScriptRunner,
  type SandboxPrecheckRunner,
} from '../src/prechecks/index.ts'
import { ownDir, userOptions } from './account.ts'
import { recordingLogger } from './messages.ts'
import { notes } from './notes-server.ts'

/** A runner over the real process driver, with a server of notes behind it. */
export interface PrecheckKit extends AsyncDisposable {
  readonly runner: SandboxPrecheckRunner
  readonly options: PrecheckRunnerOptions
  readonly server: ScriptedUpstream
  readonly notes: McpServer
  /** The token that the server of notes is called with. */
  readonly token: string
  readonly calls: CallEvent[]
  readonly lines: ReturnType<typeof recordingLogger>['lines']
  /** The workers that were started. */
  readonly started: WorkerSpec[]
  /** What is left of runs below the run root: their directories, and notes of the process driver. */
  left(): string[]
}

export interface PrecheckKitOptions {
  readonly runner?: Partial<PrecheckRunnerOptions>
  readonly makeDriver?: (install: DriverInstall) => Driver
  readonly wrap?: (driver: Driver) => Driver
  /** Replaces parts of the driver. */
  readonly change?: Partial<Driver>
}

export async function precheckKit(options: PrecheckKitOptions = {}): Promise<PrecheckKit> {
  const {
    makeDriver = ({ runRoot, user }) => createProcessDriver({ guest: 'precheck', runRoot, user }),
    wrap = (driver) => driver,
  } = options
  const dir = ownDir()
  const server = await scriptedUpstream(notes)
  const token = canary()
  const granted = mcpServer({
    name: 'notes',
    url: server.url,
    tools: ['find', 'erase'],
    allowHttp: true,
    token: () => token,
  })
  const started: WorkerSpec[] = []
  const calls: CallEvent[] = []
  const { logger, lines } = recordingLogger()
  const made: PrecheckRunnerOptions = {
    runRoot: join(dir.path, 'r'),
    grant: () => [granted],
    driver: (install) => ({ ...noting(wrap(makeDriver(install)), started), ...options.change }),
    onCall: (event) => calls.push(event),
    logger,
    ...userOptions,
    ...options.runner,
  }
  const runner = precheckScriptRunner(made)
  return {
    runner,
    options: made,
    server,
    notes: granted,
    token,
    calls,
    lines,
    started,
    left: () => [
      ...names(made.runRoot, /^[0-9a-f]{16}$/),
      ...names(join(made.runRoot, 'process/workers'), /./),
    ],
    async [Symbol.asyncDispose]() {
      await runner.dispose()
      await server[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

/** A schedule that fires, with the tools that were approved with its script. */
export function fired(changes: Partial<PrecheckScriptContext> = {}): PrecheckScriptContext {
  return {
    schedule: { id: 7, title: 'Morning', channel: 'fake:1', target: 'agent', createdTier: 'member' },
    firedAt: new Date('2026-03-01T08:00:00.000Z'),
    signal: new AbortController().signal,
    timeZone: 'Europe/Berlin',
    today: '2026-03-01',
    tools: [{ server: 'notes', tool: 'find' }],
    ...changes,
  }
}

/** The same driver, which notes the workers that it starts. */
export function noting(driver: Driver, started: WorkerSpec[]): Driver {
  return {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
    start: (spec, signal) => {
      started.push(spec)
      return driver.start(spec, signal)
    },
  }
}

function names(path: string, which: RegExp): string[] {
  return existsSync(path) ? readdirSync(path).filter((name) => which.test(name)) : []
}
