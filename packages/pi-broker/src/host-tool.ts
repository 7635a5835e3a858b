import type { PiImage } from '@sandbox/protocol'
import type { PiHostContext } from './host-context.ts'

/** What a tool answers. Only these fields reach the guest. */
export interface PiToolAnswer {
  readonly ok: boolean
  /** At most 1,000,000 characters. */
  readonly text?: string
  /** At most 10,000 characters, with `ok: false`. It is shown to the model. */
  readonly error?: string
  readonly image?: PiImage
}

/** A tool that runs on the host when a Pi worker calls it. */
export interface PiHostTool {
  /** `[A-Za-z0-9_-]{1,64}`, each name once. */
  readonly name: string
  /** At most 8,192 characters. */
  readonly description: string
  /** A JSON Schema object, such as typebox makes, without remote references. Inputs that do not fit are refused. */
  readonly parameters: object
  /**
   * Contract: `context` comes from the host, never from the guest; it may throw, then the guest reads a fixed
   * text; it may be called again while an earlier call runs; it must end when `context.signal` fires.
   */
  execute(
    input: Readonly<Record<string, unknown>>,
    context: Required<PiHostContext>,
  ): PiToolAnswer | Promise<PiToolAnswer>
}
