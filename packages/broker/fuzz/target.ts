import type { Random } from './random.ts'

/** Something that is fuzzed. */
export interface FuzzTarget {
  readonly name: string
  readonly about: string
  /** One case, made of nothing but these numbers. Throws (or rejects) when something does not hold. */
  run(random: Random): void | Promise<void>
  /** Lets go of what the cases shared. */
  stop?(): Promise<void>
}

/** Ends a case that does not hold. `found` is printed. */
export function hold(holds: boolean, what: string, found?: unknown): asserts holds {
  if (!holds) throw new FuzzFinding(what, found)
}

/** What a fuzzer found. */
class FuzzFinding extends Error {
  override readonly name = 'FuzzFinding'

  constructor(what: string, found: unknown) {
    super(found === undefined ? what : `${what}\n${shown(found)}`)
  }
}

function shown(found: unknown): string {
  const text = found instanceof Uint8Array ? Buffer.from(found).toString('latin1') : found
  return (JSON.stringify(text) ?? String(text)).slice(0, 4000)
}
