import { redact } from '@sandbox/credential-scope'
import { SandboxChannelStore } from './channel/channel-store.ts'
import { AdmissionLimits } from './claim/admission-limits.ts'
import { sandboxClaim } from './claim/sandbox-claim.ts'
import { DISCORD, discordCommands } from './commands/discord-commands.ts'
import { sandboxCommands } from './commands/sandbox-commands.ts'
import { payerWords, statusWords } from './commands/status-words.ts'
import { SandboxRuntime } from './defaults.ts'
import { guardedLogger } from './guarded-logger.ts'
import type { HostContext, SandboxContribution, SandboxPlugin, ServiceKey } from './host-contract.ts'
import type { SandboxOptions } from './options.ts'
import { checkPluginOptionNames } from './runtime/option-names.ts'
import { resolvesSpeakers } from './speakers.ts'

/** What the plugin provides to other plugins. */
export interface SandboxService {
  readonly channels: SandboxChannelStore
  readonly runtime: SandboxRuntime
}

/** The key of {@link SandboxService}: `services.get(SANDBOX)`. */
export const SANDBOX: ServiceKey<SandboxService> = Object.freeze({ id: 'sandbox.channels' })

/**
 * The plugin: answers enabled channels from sealed workers. Options are checked in setup, before any message; the
 * engine and the image when the host starts its services.
 */
export function sandbox(options: SandboxOptions): SandboxPlugin {
  return {
    name: 'sandbox',
    provides: [SANDBOX],
    setup: (context) => setup(options, context),
  }
}

async function setup(options: SandboxOptions, context: HostContext): Promise<SandboxContribution> {
  checkPluginOptionNames(options)
  const { stateFile, initialChannels, provider = 'openai', apiKey, admission, explain, ...rest } = options
  const limits = admission === false ? undefined : new AdmissionLimits(admission)
  const { services, surfaces, queue } = context
  const logger = guardedLogger(context.logger)
  const runtime = new SandboxRuntime({
    ...rest,
    timeZone: context.env.timeZone,
    apiKey: apiKey ?? (() => context.apiKey(provider)),
    logger,
  })
  try {
    const outside = [runtime.runRoot, runtime.workspaceRoot]
    const channels = new SandboxChannelStore({
      stateFile,
      outside,
      ...(initialChannels && { initialChannels }),
      // A worker waits for a channel that was turned on, and none for one that was turned off.
      onSwitch: (channel, on) => (on ? runtime.warm(channel) : void runtime.cool(channel)),
    })
    services.provide(SANDBOX, { channels, runtime })
    const commands = sandboxCommands({
      channels,
      runtime,
      queue,
      unsafe: runtime.driver.isolation === 'none',
      detail(channel, asker) {
        const { worker, ...status } = runtime.status(channel)
        const scope = { channel, speaker: { id: asker?.id ?? '', name: '' } }
        const payer = payerWords(
          explain,
          scope,
          apiKey ? 'what apiKey gives' : `the host's login for ${provider}`,
        )
        return statusWords({ ...status, mode: 'sealed', worker: WORKER_WORDS[worker], payer }, Date.now())
      },
    })
    const discord = services.find(DISCORD)
    discord?.commands.add(discordCommands({ guard: discord.guard, commands, logger, scrub: redact }))
    const needsSpeaker = resolvesSpeakers(services)
    const claim = sandboxClaim({
      channels,
      runtime,
      surfaces,
      logger,
      needsSpeaker,
      scrub: redact,
      ...(limits && { limits }),
    })
    return { channels: [claim], services: [runtimeService(runtime, channels)] }
  } catch (cause) {
    await runtime.dispose()
    throw cause
  }
}

const WORKER_WORDS = {
  working: 'a worker is at work',
  waiting: 'a worker waits for the next message',
  none: 'the next message starts a worker',
} as const

function runtimeService(runtime: SandboxRuntime, channels: SandboxChannelStore) {
  return {
    name: 'sandbox-runtime',
    async start(): Promise<void> {
      await runtime.start()
      for (const channel of channels.list()) runtime.warm(channel)
    },
    busy: (): string[] => runtime.busy(),
    stop: () => runtime.dispose(),
  }
}
