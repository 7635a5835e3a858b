import type { Turn } from '../turn/turn-binding.ts'
import type { McpLink, McpServer } from './mcp-port.ts'

/** The connections of a broker's turns: one per turn and server, so that no speaker uses another's session. */
export class McpLinks {
  readonly #turns = new Map<Turn, Map<McpServer, McpLink>>()
  readonly #closing = new Set<Promise<unknown>>()

  /**
   * The turn's connection to a server. It is closed when the turn ends.
   * @throws CallRefusal when that is already so.
   */
  of(turn: Turn, server: McpServer): McpLink {
    turn.signal.throwIfAborted()
    const links = this.#turns.get(turn) ?? this.#linksFor(turn)
    const link = links.get(server) ?? server.open()
    links.set(server, link)
    return link
  }

  /** Resolves when every connection of every ended turn is closed. Never rejects. */
  async closed(): Promise<void> {
    await Promise.all(this.#closing)
  }

  #linksFor(turn: Turn): Map<McpServer, McpLink> {
    const links = new Map<McpServer, McpLink>()
    this.#turns.set(turn, links)
    const onEnd = () => {
      this.#turns.delete(turn)
      const closing = Promise.allSettled([...links.values()].map((link) => link.close()))
      this.#closing.add(closing)
      void closing.then(() => this.#closing.delete(closing))
    }
    turn.signal.addEventListener('abort', onEnd, { once: true })
    return links
  }
}
