import { redact } from '@sandbox/credential-scope'
import { type CollectOptions, collectPiAttachments } from './attachments/index.ts'
import { SandboxChannelStore } from './channel/channel-store.ts'
import { AdmissionLimits, type AdmissionOptions } from './claim/admission-limits.ts'
import { piClaim } from './claim/pi-claim.ts'
import { DISCORD, discordCommands } from './commands/discord-commands.ts'
import { sandboxCommands } from './commands/sandbox-commands.ts'
import { type ExplainPayer, payerWords, statusWords } from './commands/status-words.ts'
import { errorText } from './error-text.ts'
import { guardedLogger } from './guarded-logger.ts'
import type {
  ChannelKey,
  HostContext,
  HostLogger,
  SandboxContribution,
  SandboxPlugin,
  ServiceKey,
} from './host-contract.ts'
import { PiSandboxRuntime } from './pi-defaults.ts'
import type { PiSandboxRuntimeOptions } from './pi-options.ts'
import { checkOptionKinds, PI_PLUGIN_KINDS, refuseEmpty, requireOption } from './runtime/option-kinds.ts'
import { ADMISSION, checkNames, names, PAYER, STATE_FILE } from './runtime/option-names.ts'
import { PI_RUNTIME } from './runtime/pi-option-names.ts'
import type { PiProgressUpdate } from './runtime/pi-progress.ts'
import { resolvesSpeakers } from './speakers.ts'

/** Options of {@link piSandbox}. The time zone is the host's. */
export interface PiSandboxOptions
  extends Omit<PiSandboxRuntimeOptions, 'oauthToken' | 'timeZone' | 'logger'> {
  /** Absolute path of the list of enabled channels, outside the party directory. */
  readonly stateFile: string
  /** Channels that are on when there is no state file yet. */
  readonly initialChannels?: readonly ChannelKey[]
  /** Asked before every model call. With it, the host's own login is never read. */
  readonly oauthToken?: PiSandboxRuntimeOptions['oauthToken']
  /** Whose login of the host pays when there is no `oauthToken`; default `anthropic`. */
  readonly provider?: string
  /** The profile that a channel runs under; default: the first of `profiles`. */
  readonly profileOf?: (channel: ChannelKey) => string
  /** Says who pays for a scope, without the key, for `status`; `explain` of a key file is one. It must answer at once. */
  readonly explain?: ExplainPayer
  /** How many messages of a speaker and of a channel are taken; `false`: all. */
  readonly admission?: AdmissionOptions | false
  /** How what comes with a message is fetched; `false`: it is not. */
  readonly attachments?: Omit<CollectOptions, 'message' | 'signal' | 'logger'> | false
  /** An answer as it grows, for surfaces that can show one. May never be called. A throw is ignored. */
  readonly onProgress?: (channel: ChannelKey, progress: PiProgressUpdate) => void
}

const PLUGIN = names<Exclude<keyof PiSandboxOptions, keyof PiSandboxRuntimeOptions>>({
  stateFile: 1,
  initialChannels: 1,
  provider: 1,
  profileOf: 1,
  explain: 1,
  admission: 1,
  attachments: 1,
  onProgress: 1,
})

const ATTACHMENTS = names<keyof Exclude<NonNullable<PiSandboxOptions['attachments']>, false>>({
  fetch: 1,
  prepareImage: 1,
  maxPixels: 1,
  totalMs: 1,
  describeFailure: 1,
})

/** What the plugin provides to other plugins. */
export interface PiSandboxService {
  readonly channels: SandboxChannelStore
  readonly runtime: PiSandboxRuntime
}

/** The key of {@link PiSandboxService}: `services.get(PI_SANDBOX)`. */
export const PI_SANDBOX: ServiceKey<PiSandboxService> = Object.freeze({ id: 'sandbox.pi-channels' })

/**
 * The plugin for Pi mode: answers enabled channels from a long-lived container of each with the real Pi agent in it.
 * Options are checked in setup, before any message; the engine and the image when the host starts its services.
 */
export function piSandbox(options: PiSandboxOptions): SandboxPlugin {
  return {
    name: 'pi-sandbox',
    provides: [PI_SANDBOX],
    setup: (context) => setup(options, context),
  }
}

async function setup(options: PiSandboxOptions, context: HostContext): Promise<SandboxContribution> {
  checkOptions(options)
  const { stateFile, initialChannels, provider = 'anthropic', oauthToken, ...rest } = options
  const { profileOf, admission, attachments = {}, onProgress, explain, ...runtimeOptions } = rest
  const { services, surfaces, queue } = context
  const limits = admission === false ? undefined : new AdmissionLimits(admission)
  const logger = guardedLogger(context.logger)
  const runtime = new PiSandboxRuntime({
    ...runtimeOptions,
    timeZone: context.env.timeZone,
    oauthToken: oauthToken ?? (() => context.apiKey(provider)),
    logger,
  })
  try {
    const channels = new SandboxChannelStore({
      stateFile,
      outside: [runtime.partyDir],
      ...(initialChannels && { initialChannels }),
      onSwitch: (channel, on) => on || removeWorker(runtime, logger, channel),
    })
    services.provide(PI_SANDBOX, { channels, runtime })
    const commands = sandboxCommands({
      channels,
      runtime,
      queue,
      unsafe: runtime.driver.isolation === 'none',
      detail(channel, asker) {
        const status = runtime.status(channel)
        const scope = { channel, speaker: { id: asker?.id ?? '', name: '' } }
        const payer = payerWords(
          explain,
          scope,
          oauthToken ? 'what oauthToken gives' : `the host's login for ${provider}`,
        )
        return statusWords({ ...status, mode: 'Pi', worker: workerWords(status), payer }, Date.now())
      },
    })
    const discord = services.find(DISCORD)
    discord?.commands.add(
      discordCommands({ guard: discord.guard, commands, logger, scrub: redact, group: 'pi' }),
    )
    const first = Object.keys(options.profiles)[0] ?? ''
    const claim = piClaim({
      channels,
      runtime,
      surfaces,
      logger,
      profileOf: profileOf === undefined ? () => first : guarded(profileOf, logger),
      needsSpeaker: resolvesSpeakers(services),
      scrub: redact,
      ...(limits && { limits }),
      ...(onProgress && { onProgress }),
      ...(attachments !== false && {
        collect: (message, signal) => collectPiAttachments({ ...attachments, message, signal, logger }),
      }),
    })
    return { channels: [claim], services: [runtimeService(runtime)] }
  } catch (cause) {
    await runtime.dispose()
    throw cause
  }
}

/** @throws SandboxPluginError `options_invalid`, before anything is made */
function checkOptions(options: PiSandboxOptions): void {
  checkOptionKinds(options, PI_PLUGIN_KINDS)
  refuseEmpty(options, 'oauthToken', PAYER)
  requireOption(options, 'stateFile', STATE_FILE)
  const taken = ['timeZone', 'logger']
  checkNames('', options, [...PI_RUNTIME.filter((name) => !taken.includes(name)), ...PLUGIN])
  checkNames('admission.', options.admission, ADMISSION)
  checkNames('attachments.', options.attachments, ATTACHMENTS)
}

/** One that fails names no profile, and the turn says that it could not be run. */
function guarded(profileOf: NonNullable<PiSandboxOptions['profileOf']>, logger: HostLogger) {
  return (channel: ChannelKey): string => {
    try {
      return profileOf(channel)
    } catch (error) {
      const cause = redact(errorText(error))
      logger.error({ channel, cause }, 'profileOf failed')
      return ''
    }
  }
}

/** The worker of a channel that is turned off goes. */
function removeWorker(runtime: PiSandboxRuntime, logger: HostLogger, channel: ChannelKey): void {
  runtime.stop(channel).catch((error: unknown) => {
    const cause = redact(errorText(error))
    logger.warn({ channel, cause }, 'the worker of a channel that was turned off could not be removed yet')
  })
}

function workerWords({ state, profile, thinking }: ReturnType<PiSandboxRuntime['status']>): string {
  const as = profile === undefined ? '' : ` as ${profile}`
  const level = thinking === undefined ? '' : `, thinking ${thinking}`
  return `worker ${state}${as}${level}`
}

function runtimeService(runtime: PiSandboxRuntime) {
  return {
    name: 'pi-sandbox-runtime',
    start: () => runtime.check(),
    busy: (): string[] => runtime.busy(),
    stop: () => runtime.dispose(),
  }
}
