import type { PiToolSpec } from './pi-turn.ts'
import type { WorkerWelcome } from './worker-hello.ts'

/** The host's answer to the hello of a Pi worker: besides the nonce, what stays the same for all of its turns. */
export interface PiWelcome extends WorkerWelcome {
  /** The host tools. This list beats whatever the image has baked in. */
  readonly tools: readonly PiToolSpec[]
  /** The MCP servers and the names of their listed tools. How these are described stands in each turn. */
  readonly mcp: readonly { readonly name: string; readonly tools: readonly string[] }[]
}

/** The answer of `GET /worker/config`. */
export interface PiWorkerConfig {
  /** Present when the host compacts conversations itself. */
  readonly compaction?: { readonly engine: string }
}

/** `POST /worker/heartbeat`: a sign of life, and whether the turn at hand is still wanted. */
export interface PiHeartbeat {
  /** The turn that the worker works on; absent = none. */
  readonly turnId?: string
}

/** The answer of `POST /worker/heartbeat`. */
export interface PiHeartbeatAnswer {
  /** True when the named turn is over for the host: the worker ends it and asks for the next one. */
  readonly over: boolean
}

/** `POST /tools/<name>` of a Pi worker. Other fields are ignored: who asks is known from the turn alone. */
export interface PiToolCall {
  readonly input: Readonly<Record<string, unknown>>
}
