import {
  type ChannelKey,
  type PiSandboxService,
  type SandboxService,
  sandboxCommands,
} from '@sandbox/roundtable-plugin'
import type { Host } from '@sandbox/roundtable-plugin/host'

/** Turns the sandbox of a channel on and off, for views that have no slash commands. */
export interface SandboxSwitch {
  isOn(channel: ChannelKey): boolean
  /** Turns it on or off, after the turns that are queued; returns what to tell the person. */
  set(channel: ChannelKey, on: boolean): Promise<string>
}

/** The switch of a running bot: what `/roundtable sandbox on|off` does. `serviceOf` says who serves a channel. */
export function sandboxSwitch(
  queue: Host['queue'],
  serviceOf: (channel: ChannelKey) => SandboxService | PiSandboxService,
): SandboxSwitch {
  return {
    isOn: (channel) => serviceOf(channel).channels.has(channel),
    set(channel, on) {
      const { channels, runtime } = serviceOf(channel)
      const commands = sandboxCommands({
        channels: {
          has: (key) => channels.has(key),
          enable(key) {
            const changed = channels.enable(key)
            if (changed && 'warm' in runtime) runtime.warm(key)
            return changed
          },
          disable(key) {
            const changed = channels.disable(key)
            if (changed && 'cool' in runtime) void runtime.cool(key)
            return changed
          },
        },
        runtime,
        queue,
        unsafe: runtime.driver.isolation === 'none',
      })
      return on ? commands.on(channel) : commands.off(channel)
    },
  }
}
