import type { BrokerOptions, CallEvent, HostTool } from '@sandbox/broker'
import {
  type AdmissionOptions,
  type ChannelKey,
  type PiSandboxOptions,
  piSandbox,
  type SandboxOptions,
  type SandboxPlugin,
  sandbox,
  type TurnEvent,
} from '@sandbox/roundtable-plugin'
import { forMode } from './operator/for-mode.ts'
import type { Routes } from './operator/routes.ts'
import type { prepareDriver } from './prepare-driver.ts'
import type { StateDir } from './state-dir.ts'

/** What turns may take, of either mode. What is left out is as the packages have it. */
export interface BotLimits {
  readonly turnTimeoutMs?: number
  readonly maxCalls?: number
  readonly maxOutputTokens?: number
  readonly workspaceBytes?: number
  readonly admission?: AdmissionOptions
  /** What one worker may use. */
  readonly limits?: NonNullable<SandboxOptions['limits']>
}

/** What the plugins tell, and whom. None of it is a message or a key. */
export interface BotWatchers {
  readonly onCall?: (event: CallEvent) => void
  readonly onTurn?: (event: TurnEvent) => void
  readonly onReceipt?: NonNullable<BrokerOptions['onReceipt']>
  /** An answer of Pi mode as it grows. */
  readonly onProgress?: (channel: ChannelKey, progress: { readonly text: string }) => void
}

/** What both plugins are made from. */
export interface PluginParts {
  readonly state: StateDir
  readonly routes: Routes
  readonly driver: Awaited<ReturnType<typeof prepareDriver>>
  /** `http:` for loopback hosts. */
  readonly allowHttp: boolean
  readonly tools?: readonly HostTool[]
  readonly bounds: BotLimits
  readonly watchers: BotWatchers
}

/** The plugin for sealed channels. */
export function sealedPlugin(parts: PluginParts): SandboxPlugin {
  const { state, routes, tools } = parts
  const { onProgress: _, ...watchers } = parts.watchers
  const options: SandboxOptions = {
    runRoot: state.runRoot,
    workspaceRoot: state.workspaceRoot,
    stateFile: state.stateFile,
    ...common(parts),
    ...watchers,
    ...routes.sealed(),
    apiKey: routes.getter,
    initialChannels: routes.channelsOf('sealed'),
    ...(tools && { tools }),
  }
  return forMode('sealed', routes, sandbox(options))
}

/** The plugin for channels in Pi mode. */
export function piPlugin(parts: PluginParts): SandboxPlugin {
  const { state, routes, tools, watchers } = parts
  const { getter, ...service } = routes.pi()
  const options: PiSandboxOptions = {
    partyDir: state.partyDir,
    stateFile: state.piStateFile,
    profiles: { default: {} },
    ...common(parts),
    ...watchers,
    ...service,
    oauthToken: getter,
    initialChannels: routes.channelsOf('pi'),
    ...(tools && { tools: tools.map(piTool) }),
  }
  return forMode('pi', routes, piSandbox(options))
}

function piTool({ execute, ...tool }: HostTool): NonNullable<PiSandboxOptions['tools']>[number] {
  return { ...tool, execute: async (input, context) => ({ ok: true, text: await execute(input, context) }) }
}

function common({ state, driver, allowHttp, bounds }: PluginParts) {
  return { ...driver, ...bounds, allowHttp, ...state.worker }
}
