/** The tail of a worker's output, in memory. */
export interface BoundedOutput {
  /** Takes a chunk and keeps at most the last bytes. Never blocks, so a flooding guest cannot stall its reader. */
  push(chunk: Uint8Array, stream?: number): void
  /** The tail as text: scrubbed, without control characters, with a first line that says what was cut. */
  text(): string
}

/** Options of {@link createBoundedOutput}. */
export interface BoundedOutputOptions {
  /** Bytes kept. Default 64 KiB. */
  readonly maxBytes?: number
  /** Applied to the whole tail. */
  scrub?(text: string): string
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: taking them out is the purpose
const CONTROL = /\u001b\[[0-9;?]*[ -/]*[@-~]|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Makes an empty tail. Holds at most twice `maxBytes`. */
export function createBoundedOutput({
  maxBytes = 64 * 1024,
  scrub = (text) => text,
}: BoundedOutputOptions = {}): BoundedOutput {
  let chunks: Uint8Array[] = []
  let held = 0
  let dropped = 0

  function cut(): Buffer {
    const tail = Buffer.concat(chunks)
    const kept = tail.subarray(Math.max(0, tail.length - maxBytes))
    dropped += tail.length - kept.length
    chunks = [Uint8Array.from(kept)]
    held = kept.length
    return kept
  }

  return {
    push(chunk) {
      const part = chunk.subarray(Math.max(0, chunk.length - maxBytes))
      dropped += chunk.length - part.length
      chunks.push(Uint8Array.from(part))
      held += part.length
      if (held > 2 * maxBytes) cut()
    },
    text() {
      const plain = withoutControls(scrub(cut().toString('utf8')))
      return dropped > 0 ? `[${dropped} bytes cut]\n${plain}` : plain
    },
  }
}

/** Takes out terminal sequences and control characters, but for tab and line feed. */
export function withoutControls(text: string): string {
  return text.replace(CONTROL, '')
}
