import type { PiMcpSpec } from '@sandbox/protocol'

/** A channel has few speakers at a time. */
const SPEAKERS = 64

/**
 * What each speaker was shown of the MCP servers, for a short while, so that turn after turn of one speaker does not wait
 * for the same lists. Nobody is shown another's list, and one in which a server is missing is asked for again.
 */
export class ShownTools {
  readonly #keptMs: number
  readonly #kept = new Map<string, { readonly specs: readonly PiMcpSpec[]; readonly until: number }>()

  constructor(keptMs: number) {
    this.#keptMs = keptMs
  }

  /** The kept list of a speaker, or what `ask` answers, which is kept when it has `servers` servers. */
  async of(speakerId: string, servers: number, ask: () => Promise<PiMcpSpec[]>): Promise<PiMcpSpec[]> {
    const kept = this.#kept.get(speakerId)
    if (kept !== undefined && performance.now() < kept.until) return [...kept.specs]
    this.#kept.delete(speakerId)
    const specs = await ask()
    if (specs.length < servers) return specs
    this.#kept.set(speakerId, { specs, until: performance.now() + this.#keptMs })
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > SPEAKERS && oldest !== undefined) this.#kept.delete(oldest)
    return [...specs]
  }
}
