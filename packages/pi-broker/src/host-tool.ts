import type { PiHostContext } from './host-context.ts'

/** An image that a tool answers with. */
export interface PiToolImage {
  /** `image/png`, `image/jpeg`, `image/webp` or `image/gif`. */
  readonly mimeType: string
  /** Base64, 1 byte to 20 MiB when decoded. */
  readonly data: string
}

/** What a tool answers. Only these fields reach the guest. */
export interface PiToolAnswer {
  readonly ok: boolean
  /** At most 1,000,000 characters. */
  readonly text?: string
  /** At most 10,000 characters, with `ok: false`. It is shown to the model. */
  readonly error?: string
  readonly image?: PiToolImage
}

/** A tool that runs on the host when a Pi worker calls it. */
export interface PiHostTool {
  /** `[A-Za-z0-9_-]{1,64}`, each name once. */
  readonly name: string
  readonly description: string
  /** JSON Schema of the input, without references to other documents. */
  readonly parameters: Readonly<Record<string, unknown>>
  /**
   * Contract: `context` comes from the host, never from the guest; it may throw, then the guest reads a fixed
   * text; it may be called again while an earlier call runs; it must end when `context.signal` fires.
   */
  execute(
    input: Readonly<Record<string, unknown>>,
    context: PiHostContext,
  ): PiToolAnswer | Promise<PiToolAnswer>
}
