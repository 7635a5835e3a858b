import type { BrokerOptions, CallEvent, HostTool, McpServer } from '@sandbox/broker'
import type { CredentialGetter } from '@sandbox/credential-scope'
import type { Driver, WarmLimits, WorkerLimits } from '@sandbox/docker-worker'
import type { AdmissionOptions } from './claim/admission-limits.ts'
import type { ExplainPayer } from './commands/status-words.ts'
import type { ChannelKey, HostLogger } from './host-contract.ts'
import type { FailureWording } from './runtime/failure-words.ts'
import type { TurnEvent } from './runtime/turn-state.ts'

/** What a driver is told about the installation that it works for. */
export interface DriverInstall {
  readonly installId: string
  readonly user: { readonly uid: number; readonly gid: number }
  readonly runRoot: string
}

/** Options of the runtime. Everything is checked when it is constructed, before any message. */
export interface SandboxRuntimeOptions {
  /** Image of the worker, as `sandbox-worker build` tags it. Needed by the docker driver. */
  readonly image?: string
  /** Absolute directory for sockets, mode 0700, at most 77 bytes long. Created when missing. */
  readonly runRoot: string
  /** Absolute directory for the channels' workspaces, mode 0700. Created when missing. */
  readonly workspaceRoot: string
  /** Name of the model, as the model service knows it. */
  readonly model: string
  /** Full URL of the Chat Completions endpoint. */
  readonly modelUrl: string
  /** Asked before every model call; no answer means that the call fails. */
  readonly apiKey: CredentialGetter
  /**
   * Picks another endpoint, model and place of the key for some channels or speakers. A credential that does not say
   * which origin it is for is for that of `modelUrl`, and goes nowhere else.
   */
  readonly upstream?: NonNullable<BrokerOptions['upstream']>
  /** Tools that run on the host. */
  readonly tools?: readonly HostTool[]
  /** MCP servers, made by `mcpServer` of `@sandbox/broker/mcp`. One that does not answer is left out of the turn. */
  readonly mcp?: readonly McpServer[]
  /** Replaces the worker's default prompt. At most 8 KiB as JSON. */
  readonly prompt?: string
  /** IANA name; default `UTC`. */
  readonly timeZone?: string
  /** How long a turn may take; 1,000 to 600,000, default 120,000. */
  readonly turnTimeoutMs?: number
  /**
   * Disk that a channel's workspace may take, in bytes: measured before a worker starts and after each turn. A channel
   * with more gets no turn until there is less. At least 1 MiB, default 256 MiB.
   */
  readonly workspaceBytes?: number
  /** The worker's user. Default: the host's own. A host that is root must name both. */
  readonly uid?: number
  readonly gid?: number
  /** `docker` (default), `process` (no isolation at all), or a function that makes one. */
  readonly driver?: 'docker' | 'process' | ((install: DriverInstall) => Driver)
  /** Path of the engine's socket; default: what `DOCKER_HOST` says, else `/var/run/docker.sock`. */
  readonly engineSocket?: string
  /** What one worker of the docker driver may use. */
  readonly limits?: WorkerLimits
  /**
   * How many workers may wait for turns, and how long: `{ workers, memoryBytes, idleMs }`, default 8 workers, 128 MiB
   * and 10 minutes. `false`: none waits, and every turn starts its own.
   */
  readonly warm?: WarmLimits | false
  /** `http:` for loopback hosts. */
  readonly allowHttp?: boolean
  readonly maxCalls?: number
  readonly maxOutputTokens?: number
  readonly maxQueuedCalls?: number
  readonly authSlot?: NonNullable<BrokerOptions['authSlot']>
  readonly tokenLimitField?: NonNullable<BrokerOptions['tokenLimitField']>
  /** The host's accounts: who has no credit left gets no answer, and is told so. */
  readonly credit?: NonNullable<BrokerOptions['credit']>
  /** Gets one receipt per credential that was asked for. A throw is ignored. */
  readonly onReceipt?: NonNullable<BrokerOptions['onReceipt']>
  /** Whom a speaker without a key is told to ask; default `the owner of this bot`. */
  readonly keyContact?: string
  /** Your own words for turns that fail; see {@link FailureWording}. */
  readonly words?: FailureWording
  /** Every call of a worker: names, sizes, reasons, never values. A throw is ignored. */
  readonly onCall?: (event: CallEvent) => void
  /** Every state that a turn enters. A throw is ignored. */
  readonly onTurn?: (event: TurnEvent) => void
  /** A throw is ignored. */
  readonly logger?: HostLogger
}

/** Options of the plugin. The time zone is the host's. */
export interface SandboxOptions extends Omit<SandboxRuntimeOptions, 'apiKey' | 'timeZone' | 'logger'> {
  /** Absolute path of the list of enabled channels, outside both roots. */
  readonly stateFile: string
  /** Channels that are on when there is no state file yet. */
  readonly initialChannels?: readonly ChannelKey[]
  /** Asked before every model call. With it, the host's own login is never read. */
  readonly apiKey?: CredentialGetter
  /** Whose login of the host pays when there is no `apiKey`; default `openai`. */
  readonly provider?: string
  /** Says who pays for a scope, without the key, for `status`; `explain` of a key file is one. It must answer at once. */
  readonly explain?: ExplainPayer
  /** How many messages of a speaker and of a channel are taken; `false`: all. */
  readonly admission?: AdmissionOptions | false
}
