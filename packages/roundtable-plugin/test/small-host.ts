import { createHost } from '../src/host/index.ts'
import type { HostUnderTest } from './host-behaviour.ts'
import { recordingLogger } from './messages.ts'

/** The host of `./host`, for the suites that take any. */
export const smallHost: HostUnderTest = {
  async open(plugin, { ownerId, ...wish } = {}) {
    const host = await createHost({
      plugins: [plugin],
      logger: recordingLogger().logger,
      ...(ownerId !== undefined && { ownerId, discord: {} }),
      ...wish,
    })
    await host.start()
    return {
      conversations: host.conversations,
      surfaces: host.surfaces,
      added: () => host.commands.added(),
      stop: () => host.stop(),
    }
  },
}
