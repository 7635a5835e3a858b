import { type SandboxCredentialScope, snapshotScope } from '@sandbox/credential-scope'
import { linkCallSignal, raceSignal } from '../engine/call/call-signal.ts'
import { BrokerError } from '../engine/errors.ts'
import type { McpServer } from '../engine/mcp/mcp-port.ts'

/** A server and the tools of it that a script may call. */
export interface PrecheckTools {
  readonly server: string
  readonly tools: readonly string[]
}

/**
 * Says which servers a scope may reach now, with all the tools that it may call. Asked once per run, with a frozen
 * copy of the scope; it must answer within 10 s.
 */
export type PrecheckGrant = (
  scope: SandboxCredentialScope,
  options: { readonly signal: AbortSignal },
) => readonly McpServer[] | Promise<readonly McpServer[]>

const GRANT_MS = 10_000

/**
 * PC-01 and PC-02: the servers of a run. Only what is both granted now and was approved with the script; a server of
 * which nothing is left is none.
 * @throws BrokerError `grant_failed`. Rejects with the signal's reason when that fires.
 */
export async function grantedServers(options: {
  readonly grant: PrecheckGrant
  readonly scope: SandboxCredentialScope
  readonly approved: readonly PrecheckTools[]
  readonly signal: AbortSignal
}): Promise<readonly McpServer[]> {
  const { grant, scope, approved, signal: outer } = options
  const { signal, detach } = linkCallSignal({ guest: outer, limitMs: GRANT_MS })
  try {
    const granted = await raceSignal(ask(grant, scope, signal), signal)
    return checked(granted).flatMap((server) => {
      const allowed = approved.filter((one) => one.server === server.name).flatMap((one) => one.tools)
      const tools = server.tools.filter((tool) => allowed.includes(tool))
      return tools.length === 0 ? [] : [{ ...server, tools }]
    })
  } catch (cause) {
    outer.throwIfAborted()
    if (BrokerError.isInstance(cause)) throw cause
    throw new BrokerError('grant_failed', 'grant: failed, or did not answer in time', { cause })
  } finally {
    detach()
  }
}

/** Also turns what the hook throws at once into a rejection. */
async function ask(grant: PrecheckGrant, scope: SandboxCredentialScope, signal: AbortSignal) {
  return await grant(snapshotScope(scope), { signal })
}

function checked(granted: readonly McpServer[]): readonly McpServer[] {
  if (!Array.isArray(granted)) throw new BrokerError('grant_failed', 'grant: must answer with an array')
  const names = new Set<string>()
  for (const server of granted) {
    if (typeof server?.open !== 'function' || !Array.isArray(server.tools)) {
      throw new BrokerError('grant_failed', 'grant: answered with something that mcpServer did not make')
    }
    if (names.has(server.name)) throw new BrokerError('grant_failed', `grant: "${server.name}" comes twice`)
    names.add(server.name)
  }
  return granted
}
