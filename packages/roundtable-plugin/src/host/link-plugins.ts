import { SandboxPluginError } from '../errors.ts'
import type {
  ChannelClaim,
  ChatSurface,
  HostContext,
  SandboxContribution,
  ServiceKey,
} from '../host-contract.ts'
import type { ServiceRegistry } from './service-registry.ts'

/** What a plugin's setup may return to this host. */
export interface PluginContribution extends SandboxContribution {
  surfaces?: readonly ChatSurface[]
}

/** A plugin of this host. A `SandboxPlugin` is one. */
export interface HostPlugin {
  name: string
  provides?: readonly ServiceKey<unknown>[]
  /** Services that must be there before its setup. */
  requires?: readonly ServiceKey<unknown>[]
  setup(context: HostContext): PluginContribution | Promise<PluginContribution>
}

/** What all plugins together contribute. */
export interface Linked {
  /** By descending priority. */
  readonly claims: readonly ChannelClaim[]
  /** In plugin order. */
  readonly contributions: readonly PluginContribution[]
}

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/
const PARTS = ['channels', 'services', 'surfaces']

/**
 * Sets every plugin up, in order, and checks what it brings.
 * @throws SandboxPluginError `plugin_invalid`, and whatever a setup throws
 */
export async function linkPlugins(
  plugins: readonly HostPlugin[],
  registry: ServiceRegistry,
  context: Omit<HostContext, 'services'>,
): Promise<Linked> {
  checkNames('plugins', plugins)
  for (const { name, setup, provides = [] } of plugins) {
    refuse(!NAME.test(name), `"${name}" cannot be a plugin's name`)
    refuse(typeof setup !== 'function', `${name} has no setup`)
    for (const key of provides) registry.declare(name, key)
  }
  const contributions: PluginContribution[] = []
  try {
    for (const plugin of plugins) await setUp(plugin, registry, context, contributions)
    const claims = contributions.flatMap(({ channels = [] }) => channels)
    checkNames('claims', claims)
    checkNames(
      'services',
      contributions.flatMap(({ services = [] }) => services),
    )
    return { claims: claims.toSorted((a, b) => b.priority - a.priority), contributions }
  } catch (cause) {
    await giveBack(contributions)
    throw cause
  }
}

/** Stops what setups opened, when nothing comes of them. Never rejects: why is told already. */
export async function giveBack(contributions: readonly PluginContribution[]): Promise<void> {
  for (const service of contributions.flatMap(({ services }) => services ?? []).toReversed()) {
    try {
      await service.stop?.()
    } catch {
      // The others are stopped all the same.
    }
  }
}

async function setUp(
  plugin: HostPlugin,
  registry: ServiceRegistry,
  context: Omit<HostContext, 'services'>,
  contributions: PluginContribution[],
): Promise<void> {
  const { name } = plugin
  for (const key of plugin.requires ?? []) registry.get(key)
  const services = registry.view(name, plugin.provides)
  const contribution = await plugin.setup({ ...context, services })
  refuse(typeof contribution !== 'object' || contribution === null, `the setup of ${name} returned no object`)
  // Before it is looked at: what it opened is given back when it is refused.
  contributions.push(contribution)
  services.close()
  const unknown = Object.keys(contribution).find((part) => !PARTS.includes(part))
  refuse(unknown !== undefined, `${name} contributes "${unknown}"; this host knows ${PARTS.join(', ')}`)
}

function checkNames(what: string, named: readonly { readonly name: string }[]): void {
  const names = named.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  refuse(twice !== undefined, `two ${what} are named ${twice}`)
}

function refuse(wrong: boolean, problem: string): void {
  if (wrong) throw new SandboxPluginError('plugin_invalid', problem)
}
