import type { Driver, WorkerLimits } from '@sandbox/docker-worker'
import type { PiSandboxBrokerOptions } from '@sandbox/pi-broker'
import type { HostLogger } from './host-contract.ts'
import type { DriverInstall } from './options.ts'
import type { FailureWording } from './runtime/failure-words.ts'
import type { PiPolicyOptions } from './runtime/pi-policy.ts'
import type { EffortJudge, ForgetMemory, MemoryBlock } from './runtime/pi-ports.ts'
import type { TurnEvent } from './runtime/turn-state.ts'

/**
 * Options of the Pi runtime. Everything is checked when it is constructed, before any message; no credential is asked
 * for. Those of the broker (`upstream`, `tools`, `mcp`, `compaction`, `maxCalls`, …) mean what they mean there.
 */
export interface PiSandboxRuntimeOptions
  extends PiPolicyOptions,
    Omit<PiSandboxBrokerOptions, 'model' | 'bodyBudget'> {
  /**
   * Absolute directory for everything of the channels, mode 0700, made when missing; one host for each. The socket of a
   * channel lies below it, so it has at most 66 bytes for a channel key of 15 characters.
   */
  readonly partyDir: string
  /** Image of the worker, as `sandbox-worker build --pi` tags it. Needed by the docker driver. */
  readonly image?: string
  /** For the process driver alone: the operator's content folder, which an image has inside. */
  readonly content?: string
  /** What channels may be run as, by name. `{ default: {} }` is one that has everything. */
  readonly profiles: PiPolicyOptions['profiles']
  /** Name of the model, as the Messages API knows it. */
  readonly model: string
  /** Replaces the prompt of the image. At most 100,000 characters. */
  readonly prompt?: string
  /** IANA name; default `UTC`. */
  readonly timeZone?: string
  /** How long a turn may take; 1,000 to 600,000, default 600,000. */
  readonly turnTimeoutMs?: number
  /** How long a worker may take until its agent is loaded; 1,000 to 600,000, default 90,000. */
  readonly startTimeoutMs?: number
  /** Disk that a channel's workspace may take, in bytes. At least 1 MiB, default 1 GiB. */
  readonly workspaceBytes?: number
  /** Whom a speaker without a token is told to ask; default `the owner of this bot`. */
  readonly keyContact?: string
  /** Your own words for turns that fail; see {@link FailureWording}. */
  readonly words?: FailureWording
  /** Decides how hard the model may think, beside the start of the worker. Default: `low`. */
  readonly judge?: EffortJudge
  /** What is remembered about a speaker. It stands in the system prompt of this turn alone. */
  readonly memory?: MemoryBlock
  /** Takes away what `memory` gives, when a speaker is to be forgotten or a conversation is erased. */
  readonly forgetMemory?: ForgetMemory
  /** The worker's user. Default: the host's own. A host that is root must name both. */
  readonly uid?: number
  readonly gid?: number
  /** `docker` (default), `process` (no isolation at all), or a function that makes one. */
  readonly driver?: 'docker' | 'process' | ((install: DriverInstall) => Driver)
  /** Path of the engine's socket; default: what `DOCKER_HOST` says, else `/var/run/docker.sock`. */
  readonly engineSocket?: string
  /** What one worker of the docker driver may use. */
  readonly limits?: WorkerLimits
  /** Every state that a turn enters. A throw is ignored. */
  readonly onTurn?: (event: TurnEvent) => void
  /** A throw is ignored. */
  readonly logger?: HostLogger
}
