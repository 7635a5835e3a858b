import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey, ChatSurface, HostSurfaces, OutboundReply } from '../host-contract.ts'
import { quietly } from '../quietly.ts'

/** The part before the first colon; empty for what is no channel key. */
export function surfaceOf(channel: ChannelKey): string {
  return channel.slice(0, Math.max(0, channel.indexOf(':')))
}

/** Finds the surface of a channel by its prefix. */
export class SurfaceRegistry implements HostSurfaces {
  readonly #surfaces = new Map<string, ChatSurface>()
  #linked = false

  /** Adds a surface. Throws `plugin_invalid` for a bad or taken prefix. */
  add(surface: ChatSurface): void {
    const prefix = surface.surface
    if (!/^[^:\s]+$/.test(prefix)) {
      throw new SandboxPluginError('plugin_invalid', `"${prefix}" cannot be a surface: no colon, no space`)
    }
    if (this.#surfaces.has(prefix)) {
      throw new SandboxPluginError('plugin_invalid', `two surfaces serve ${prefix}`)
    }
    this.#surfaces.set(prefix, surface)
  }

  /** From now on the surfaces may be used. */
  link(): void {
    this.#linked = true
  }

  /** The surface of a channel. Throws `not_linked` during setup, as every member does. */
  of(channel: ChannelKey): ChatSurface | undefined {
    if (!this.#linked) {
      throw new SandboxPluginError('not_linked', 'surfaces can be used after setup only')
    }
    return this.#surfaces.get(surfaceOf(channel))
  }

  /** Rejects with `surface_unknown`, or with `files_unsupported` when the surface takes no files. */
  async sendReply(channel: ChannelKey, reply: OutboundReply): Promise<void> {
    const surface = this.of(channel)
    const prefix = surfaceOf(channel)
    if (surface === undefined) throw new SandboxPluginError('surface_unknown', `no surface serves ${prefix}`)
    if ((reply.files ?? []).length > 0 && surface.supportsFiles !== true) {
      throw new SandboxPluginError('files_unsupported', `the surface ${prefix} takes no files`)
    }
    await surface.sendReply(channel, reply)
  }

  /** Shows that somebody is typing, until the returned function is called. A surface that fails at it costs no turn. */
  startTyping(channel: ChannelKey): () => void {
    const surface = this.of(channel)
    return shown(() => surface?.startTyping?.(channel))
  }

  /** Shows a way to stop, until the returned function is called. A surface that fails at it costs no turn. */
  showStop(channel: ChannelKey): () => void {
    const surface = this.of(channel)
    return shown(() => surface?.showStop?.(channel))
  }

  /** Marks a message, where the surface can. */
  async react(channel: ChannelKey, messageId: string, emoji: string): Promise<void> {
    await this.of(channel)?.react?.(channel, messageId, emoji)
  }

  /** Takes a mark away, where the surface can. */
  async unreact(channel: ChannelKey, messageId: string, emoji: string): Promise<void> {
    await this.of(channel)?.unreact?.(channel, messageId, emoji)
  }
}

function shown(show: () => (() => void) | undefined): () => void {
  let hide: (() => void) | undefined
  quietly(() => {
    hide = show()
    return hide
  })
  return () => quietly(() => hide?.())
}
