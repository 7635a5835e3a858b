import type { CallUsage } from '../call/call-event.ts'

/** A failure in the broker's words, for a family to put into its shape. */
export interface WireError {
  readonly status: number
  /** Machine-readable. */
  readonly code: string
  readonly message: string
}

/** A piece of text that goes on where the block's last piece ended. */
export interface DeltaText {
  /** Which block: pieces of one block are read in one go by whoever assembles them. */
  readonly block: string
  readonly text: string
  /** Whether the block is JSON text itself, such as the arguments of a tool call. */
  readonly deeper: boolean
}

/** An event as a family sees it. */
export interface FamilyEvent {
  /** The `event` field. */
  readonly type: string
  /** The data as it stands, when it is short; else empty. */
  readonly data: string
  /** The data as JSON; `undefined` when it is no JSON object. */
  readonly value: Readonly<Record<string, unknown>> | undefined
}

/** What an event means. */
export interface Reading {
  readonly deltas?: readonly DeltaText[]
  /** Blocks that are complete: those whose name starts so. */
  readonly closes?: readonly string[]
  /** `finished`: the stream may end here; `ended`: nothing comes after this event. */
  readonly end?: 'finished' | 'ended'
  /** The provider says that it failed. */
  readonly failed?: boolean
  readonly usage?: CallUsage
  /** The event tells nothing but token counts. */
  readonly usageOnly?: boolean
  /** Ids of things that the provider keeps and that a later request may name. */
  readonly created?: readonly string[]
}

/** One stream of a family, followed event by event. */
export interface FamilyStream {
  read(event: FamilyEvent): Reading
  /** The event, ready to send, with which a stream that broke off ends. */
  failure(error: WireError): Uint8Array
}

/** A dialect in which models are called. */
export interface WireFamily {
  readonly name: 'openai-chat' | 'openai-responses' | 'anthropic'
  /** The body of an error answer. */
  errorBody(error: WireError): object
  /** Token counts of an answer that is not streamed. */
  usageOf(answer: Readonly<Record<string, unknown>>): CallUsage | undefined
  /**
   * Where an answer that is not streamed lists what the provider keeps besides the answer itself: items with an
   * `id`. Absent = the provider keeps nothing.
   */
  readonly keptItems?: string
  /** Starts to follow a stream. */
  follow(): FamilyStream
}
