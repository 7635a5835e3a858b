import type { ChannelKey, ChannelQueuePort } from '../host-contract.ts'

/** Who gives a command. */
export interface Asker {
  readonly id: string
}

/** What the owner commands act on. */
export interface SandboxCommandParts {
  readonly channels: {
    has(channel: ChannelKey): boolean
    enable(channel: ChannelKey): boolean
    disable(channel: ChannelKey): boolean
  }
  readonly runtime: {
    busy(): readonly ChannelKey[]
    revoke(scope: { readonly channel: ChannelKey }): readonly ChannelKey[]
    restore(scope: { readonly channel: ChannelKey }): boolean
  }
  readonly queue: ChannelQueuePort
  /** True when workers are no sandbox; `status` says so. */
  readonly unsafe?: boolean
  /** More about a channel that is on, for `status`: whole sentences. `asker` is who wants to know. */
  detail?(channel: ChannelKey, asker?: Asker): string
}

/**
 * The owner commands, without a chat service: each returns what to tell the owner. Who may use them is the
 * caller's to decide. They reject only when the state file cannot be written, and then nothing changed.
 */
export interface SandboxCommands {
  /** Turns the channel on, after the turns that are queued. */
  on(channel: ChannelKey): Promise<string>
  /** Turns the channel off, after the turns that are queued. Workspace and memory are kept. */
  off(channel: ChannelKey): Promise<string>
  /** Stops all spending in the channel at once, whatever runs or waits, until {@link restore}. */
  revoke(channel: ChannelKey): string
  /** Allows it again. */
  restore(channel: ChannelKey): string
  /** Says at once whether the channel is on, and how it does, whatever runs or waits. */
  status(channel: ChannelKey, asker?: Asker): string
}

/** Makes the owner commands. */
export function sandboxCommands(parts: SandboxCommandParts): SandboxCommands {
  const { channels, runtime, queue, unsafe } = parts
  const where = unsafe === true ? 'from a plain process, which is NO sandbox' : 'from sealed workers'
  return {
    on: (channel) =>
      queue.run(channel, async () =>
        channels.enable(channel)
          ? `The sandbox is on: mentions and replies in this channel are answered ${where}.`
          : 'The sandbox was on already.',
      ),
    off: (channel) =>
      queue.run(channel, async () =>
        channels.disable(channel)
          ? 'The sandbox is off in this channel. Its memory is kept.'
          : 'The sandbox was off already.',
      ),
    revoke(channel) {
      const ended = runtime.revoke({ channel }).length > 0 ? 'The turn that was running is ended; n' : 'N'
      return `${ended}obody spends anything in this channel until you restore it.`
    },
    restore: (channel) =>
      runtime.restore({ channel })
        ? 'Spending is allowed again in this channel.'
        : 'Spending was not stopped in this channel as a whole.',
    status(channel, asker) {
      if (!channels.has(channel)) return 'The sandbox is off in this channel.'
      const running = runtime.busy().includes(channel)
      const waiting = queue.size(channel) - (running ? 1 : 0)
      const turn = running ? 'a turn is running' : 'no turn is running'
      const detail = parts.detail === undefined ? '' : ` ${parts.detail(channel, asker)}`
      return `The sandbox is on in this channel, answering ${where}; ${turn}, ${Math.max(0, waiting)} waiting.${detail}`
    },
  }
}
