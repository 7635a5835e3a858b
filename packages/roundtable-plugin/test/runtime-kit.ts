import { readdirSync } from 'node:fs'
import type { CallEvent } from '@sandbox/broker'
import { createProcessDriver, type Driver } from '@sandbox/docker-worker'
import { chatText, type ScriptedUpstream, scriptedUpstream, type UpstreamScript } from '@sandbox/testing'
import { SandboxRuntime } from '../src/defaults.ts'
import type { SandboxRuntimeOptions } from '../src/options.ts'
import type { TurnEvent } from '../src/runtime/turn-state.ts'
import { ownRoots, userOptions } from './account.ts'
import { guestProgram } from './guest-program.ts'
import { recordingLogger } from './messages.ts'

export const ann = { id: 'u-ann', name: 'Ann' }
export const bob = { id: 'u-bob', name: 'Bob' }

/** A runtime on real processes, with a model service on loopback. */
export interface Kit extends AsyncDisposable {
  readonly upstream: ScriptedUpstream
  readonly roots: ReturnType<typeof ownRoots>
  readonly options: SandboxRuntimeOptions
  readonly runtime: SandboxRuntime
  readonly calls: CallEvent[]
  readonly turns: TurnEvent[]
  readonly lines: ReturnType<typeof recordingLogger>['lines']
  /** Names of run directories. */
  runDirs(): string[]
}

export interface KitOptions {
  readonly script?: UpstreamScript
  /** A guest of the test's own; see {@link guestProgram}. */
  readonly guest?: string
  /** Changes the real driver. */
  readonly wrap?: (driver: Driver) => Driver
  readonly runtime?: Partial<SandboxRuntimeOptions>
}

export async function kit({
  script = () => chatText('hi'),
  guest,
  wrap,
  runtime,
}: KitOptions = {}): Promise<Kit> {
  const upstream = await scriptedUpstream(script)
  const roots = ownRoots()
  const calls: CallEvent[] = []
  const turns: TurnEvent[] = []
  const { logger, lines } = recordingLogger()
  const bundle = guest === undefined ? {} : { bundle: guestProgram(roots.free, guest) }
  const options: SandboxRuntimeOptions = {
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    model: 'm',
    modelUrl: `${upstream.url}/v1/chat/completions`,
    allowHttp: true,
    apiKey: () => 'sk-test-0123456789abcdef',
    ...userOptions,
    driver: ({ runRoot, user }) => {
      const driver = createProcessDriver({ runRoot, user, ...bundle })
      return wrap === undefined ? driver : wrap(driver)
    },
    onCall: (event) => calls.push(event),
    onTurn: (event) => turns.push(event),
    // Tests that say nothing of waiting workers are about turns that start their own.
    warm: false,
    logger,
    ...runtime,
  }
  const made = new SandboxRuntime(options)
  return {
    upstream,
    roots,
    options,
    runtime: made,
    calls,
    turns,
    lines,
    runDirs: () => runDirs(roots.runRoot),
    async [Symbol.asyncDispose]() {
      await made.dispose()
      await upstream[Symbol.asyncDispose]()
      roots[Symbol.dispose]()
    },
  }
}

/** Names of the run directories below a run root. */
export function runDirs(runRoot: string): string[] {
  return readdirSync(runRoot).filter((name) => /^[0-9a-f]{8}-[0-9a-f]{8}$/.test(name))
}

/** Names of the channels' directories below a workspace root. */
export function workspaces(workspaceRoot: string): string[] {
  return readdirSync(workspaceRoot).filter((name) => /^[0-9a-f]{64}$/.test(name))
}
