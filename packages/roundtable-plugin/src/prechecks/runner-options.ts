import type { CallEvent, McpServer } from '@sandbox/broker'
import type { PrecheckOptions } from '@sandbox/broker/mcp'
import type { Driver } from '@sandbox/docker-worker'
import { SandboxPluginError } from '../errors.ts'
import type { HostLogger } from '../host-contract.ts'
import type { DriverInstall } from '../options.ts'
import type { PrecheckScope } from './precheck-contract.ts'

/** What a `precheckScriptRunner` is made from. Everything is checked at once, before any script. */
export interface PrecheckRunnerOptions {
  /** Absolute directory for sockets, mode 0700, at most 74 bytes long. Created when missing; not that of a runtime. */
  readonly runRoot: string
  /** Image of the worker, as `sandbox-worker build` tags it. Needed by the docker driver. */
  readonly image?: string
  /**
   * Says which servers a schedule may reach now, made by `mcpServer` of `@sandbox/broker/mcp`, each with all the tools
   * that it may call there. Asked for every run and every description; it must answer within 10 s.
   */
  grant(
    scope: PrecheckScope,
    options: { readonly signal: AbortSignal },
  ): readonly McpServer[] | Promise<readonly McpServer[]>
  /**
   * In whose name a schedule's tools are called: what the servers' `token` is asked with. Omitted = nobody in the
   * chat, `{ id: 'schedule:<id>', name: 'schedule <id>' }`.
   */
  readonly speaker?: (
    scope: PrecheckScope,
    schedule: { readonly id: string },
  ) => { readonly id: string; readonly name: string }
  /** The host's name of a tool. Omitted = the tool's own. */
  readonly toolName?: (server: string, tool: string) => string
  /** Longest run, in milliseconds: 1,000 to 600,000. Omitted = 60,000. */
  readonly timeoutMs?: number
  /** Calls of one run, refused ones included, 1 to 100. Omitted = 16. */
  readonly maxCalls?: number
  /** Scripts at the same time, 1 to 64. Omitted = 4. */
  readonly maxRunning?: number
  /** Scripts that wait for those, 0 to 1,000; one more is refused. Waiting counts as running time. Omitted = 32. */
  readonly maxQueued?: number
  /** The worker's user. Omitted = the host's own. A host that is root must name both. */
  readonly uid?: number
  readonly gid?: number
  /** `docker` (default), `process` (no isolation at all), or a function that makes one for the guest `precheck`. */
  readonly driver?: 'docker' | 'process' | ((install: DriverInstall) => Driver)
  /** Path of the engine's socket; omitted = what `DOCKER_HOST` says, else `/var/run/docker.sock`. */
  readonly engineSocket?: string
  /** The host's accounts: who has no credit left has no call. */
  readonly credit?: NonNullable<PrecheckOptions['credit']>
  /** Gets one receipt per credential that was asked for. A throw is ignored. */
  readonly onReceipt?: NonNullable<PrecheckOptions['onReceipt']>
  /** Every call of a worker: names, sizes, reasons, never values. A throw is ignored. */
  readonly onCall?: (event: CallEvent) => void
  /** A throw is ignored. */
  readonly logger?: HostLogger
}

/** The options of every run, with the defaults filled in. */
export interface PrecheckPolicy extends Pick<PrecheckRunnerOptions, 'grant'> {
  readonly timeoutMs: number
  readonly maxCalls: number
  readonly maxRunning: number
  readonly maxQueued: number
  readonly speaker: NonNullable<PrecheckRunnerOptions['speaker']>
  readonly toolName: NonNullable<PrecheckRunnerOptions['toolName']>
}

/** Checks what needs no engine. Throws `options_invalid` naming the option. */
export function resolvePrecheckPolicy(options: PrecheckRunnerOptions): PrecheckPolicy {
  for (const name of ['grant', 'speaker', 'toolName', 'onCall', 'onReceipt'] as const) {
    const given = options[name]
    if (typeof given === 'function' || (given === undefined && name !== 'grant')) continue
    throw invalid(name, 'must be a function')
  }
  return {
    timeoutMs: within('timeoutMs', options.timeoutMs ?? 60_000, 1_000, 600_000),
    maxCalls: within('maxCalls', options.maxCalls ?? 16, 1, 100),
    maxRunning: within('maxRunning', options.maxRunning ?? 4, 1, 64),
    maxQueued: within('maxQueued', options.maxQueued ?? 32, 0, 1_000),
    grant: (scope, more) => options.grant(scope, more),
    speaker: options.speaker ?? ((_, { id }) => ({ id: `schedule:${id}`, name: `schedule ${id}` })),
    toolName: options.toolName ?? ((_, tool) => tool),
  }
}

function within(option: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw invalid(option, `must be a whole number from ${least} to ${most}`)
}

function invalid(option: string, problem: string): SandboxPluginError {
  return new SandboxPluginError('options_invalid', `${option}: ${problem}.`)
}
