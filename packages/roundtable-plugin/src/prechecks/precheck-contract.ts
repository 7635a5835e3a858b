import type { ChannelKey, ServiceKey, Tier } from '../host-contract.ts'

/** What a precheck decided: leave the turn asleep, or wake it with a context. */
export type PrecheckResult =
  | { readonly wake: false; readonly note?: string }
  | { readonly wake: true; readonly context: string }

/** Whose schedule it is. */
export interface PrecheckScope {
  readonly channel: ChannelKey
  readonly target: string
  readonly tier?: Tier
}

/** A tool that was approved with a script. */
export interface PrecheckTool {
  readonly server: string
  readonly tool: string
  readonly held?: string
}

/** What a host knows of the run of a script. */
export interface PrecheckScriptContext {
  readonly schedule: {
    readonly id: number | string
    readonly title: string
    readonly channel: ChannelKey
    readonly target: string
    readonly createdTier?: Tier
  }
  readonly firedAt: Date
  /** Fires when the host gives the run up. */
  readonly signal: AbortSignal
  /** IANA name. */
  readonly timeZone: string
  /** `YYYY-MM-DD`, in that time zone. */
  readonly today: string
  /** The tools that were approved with the script. */
  readonly tools: readonly PrecheckTool[]
}

/** Runs precheck scripts: what a host is handed with {@link PrecheckPort.useScriptRunner}. */
export interface PrecheckScriptRunner {
  /** How long a script may take, in milliseconds. */
  readonly timeoutMs?: number
  /** The host's name of a tool. */
  toolName(server: string, tool: string): string
  /** Runs one script. Rejects with words that wake the turn. */
  run(script: string, context: PrecheckScriptContext): PrecheckResult | Promise<PrecheckResult>
  /** What whoever writes a script has to know. */
  describe(scope: PrecheckScope): string | Promise<string>
}

/** The part of a host that schedules prechecks. */
export interface PrecheckPort {
  useScriptRunner(runner: PrecheckScriptRunner): void
  scriptRunner(): PrecheckScriptRunner | undefined
}

/** The service of a host that schedules prechecks. */
export const PRECHECKS: ServiceKey<PrecheckPort> = Object.freeze({ id: 'roundtable.prechecks' })

/** A precheck that came to nothing. The message is what the turn is woken with; evidence is in `cause`. */
export class PrecheckError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'PrecheckError'
  }
}
