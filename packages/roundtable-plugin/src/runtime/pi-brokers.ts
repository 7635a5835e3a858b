import type { PiSandboxBrokerOptions } from '@sandbox/pi-broker'
import type { PiSandboxRuntimeOptions } from '../pi-options.ts'
import { HANDED_ON } from './pi-option-names.ts'
import { compactionTimeoutMs, type PiPolicy, type ResolvedPiProfile } from './pi-policy.ts'

/** What the broker of a worker is made from, by the worker's profile. */
export type PiBrokers = (profile: ResolvedPiProfile) => PiSandboxBrokerOptions

/**
 * Everything of the options that a broker knows, held to what a profile may use.
 * @throws SandboxPluginError `options_invalid`
 */
export function piBrokers(options: PiSandboxRuntimeOptions, policy: PiPolicy): PiBrokers {
  const { tools = [], mcp = [], compaction } = options
  const timeoutMs = compactionTimeoutMs(policy.turnTimeoutMs, compaction?.timeoutMs)
  const all: Readonly<Record<string, unknown>> = { ...options }
  const set = HANDED_ON.filter((name) => all[name] !== undefined).map((name) => [name, all[name]])
  return (profile) => ({
    ...Object.fromEntries(set),
    oauthToken: options.oauthToken,
    model: profile.model,
    tools: tools.filter(({ name }) => profile.tools.includes(name)),
    mcp: mcp.filter(({ name }) => profile.mcp.includes(name)),
    ...(compaction && {
      compaction: {
        engine: compaction.engine,
        timeoutMs,
        ...(compaction.maxRequestBytes !== undefined && { maxRequestBytes: compaction.maxRequestBytes }),
        compact: (request, context) => compaction.compact(request, context),
      },
    }),
  })
}
