import type { CallEvent } from '@sandbox/broker'
import type { Driver } from '@sandbox/docker-worker'
import type { PiHostContext } from '@sandbox/pi-broker'
import type {
  PiMcpSpec,
  PiOutcome,
  PiProgress,
  PiThinkingLevel,
  PiTurn,
  WorkerHello,
} from '@sandbox/protocol'
import type { ChannelKey, HostLogger } from '../host-contract.ts'
import type { RuntimeClock } from './clock.ts'
import type { PiLayout } from './pi-layout.ts'
import type { ResolvedPiProfile } from './pi-policy.ts'
import type { TurnEvent } from './turn-state.ts'

/** A turn as the desk is given it: the desk adds the protocol version and the time that is left. */
export type PiDeskTurn = Omit<PiTurn, 'protocol' | 'remainingMs'>

/** What the runtime asks of a broker: one for each worker, bound to one turn after the other. */
export interface PiBrokerPort {
  readonly desk: {
    /** What is known of the worker from its signs of life. */
    readonly state: 'starting' | 'ready' | 'working' | 'silent' | 'over'
    hello(signal?: AbortSignal): Promise<WorkerHello>
    /** Waits for the worker's first poll: its agent is loaded then. */
    ready(signal?: AbortSignal): Promise<void>
    deliver(
      turn: PiDeskTurn,
      options: {
        readonly deadline: number
        readonly signal?: AbortSignal
        onProgress?(progress: PiProgress): void
      },
    ): Promise<PiOutcome>
  }
  listen(socketPath: string, owner?: { readonly uid: number; readonly gid: number }): Promise<void>
  bind(context: PiHostContext, options?: { readonly turnId?: string }): PiBoundTurn
  mcpSpecs(options?: { readonly signal?: AbortSignal }): Promise<readonly PiMcpSpec[]>
  stop(force?: boolean): Promise<void>
}

/** A turn that is bound to a broker. */
export interface PiBoundTurn {
  readonly nonce: string
  /** Idempotent. `abort` cuts its calls in flight. */
  release(options?: { readonly abort?: boolean }): void
  /** Takes back the right to call: its calls in flight end as that. Idempotent. */
  revoke(): void
}

/** Decides how hard the model may think in a turn. */
export type EffortJudge = (question: {
  readonly channel: ChannelKey
  readonly speaker: { readonly id: string; readonly name: string }
  readonly text: string
  /** The level of the channel's turn before; absent for the first one. */
  readonly previous?: PiThinkingLevel
  readonly signal: AbortSignal
}) => PiThinkingLevel | Promise<PiThinkingLevel>

/** What the host remembers about a speaker, for the system prompt of one turn. At most 100,000 characters. */
export type MemoryBlock = (wanted: {
  readonly channel: ChannelKey
  readonly speaker: { readonly id: string; readonly name: string }
  readonly signal: AbortSignal
}) => string | undefined | Promise<string | undefined>

/** Takes away what the host remembers: of a speaker, in a channel or everywhere, or of a whole channel. */
export type ForgetMemory = (whom: {
  readonly channel?: ChannelKey
  readonly speaker?: { readonly id: string }
}) => void | Promise<void>

/** What the runtime works with. */
export interface PiRuntimePorts {
  readonly layout: PiLayout
  readonly driver: Driver
  /** Opens the broker of one worker; `onCall` hears of each of its calls. */
  openBroker(profile: ResolvedPiProfile, onCall: (event: CallEvent) => void): PiBrokerPort
  readonly judge?: EffortJudge
  readonly memory?: MemoryBlock
  readonly forgetMemory?: ForgetMemory
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
  onTurn?(event: TurnEvent): void
  readonly logger?: HostLogger
  /** Default: the machine's own. */
  readonly clock?: RuntimeClock
}
