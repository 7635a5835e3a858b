import type { CredentialGetter, Secret } from '@sandbox/credential-scope'
import { spendCredential } from '../call/credential.ts'
import type { AdmittedCall } from '../call/route.ts'
import type { McpServer } from './mcp-port.ts'

/**
 * The token of one server for the call's channel and speaker (W-08); `undefined` when the server takes none.
 * @throws CallRefusal as {@link spendCredential} does.
 */
export async function mcpSecret(
  { name, credential }: McpServer,
  call: Pick<AdmittedCall, 'turn' | 'signal' | 'record'>,
): Promise<Secret | undefined> {
  if (credential === undefined) return undefined
  const { token, origin } = credential
  const getter: CredentialGetter = ({ channel, speaker }, options) =>
    token(Object.freeze({ channel, speaker, server: name }), { signal: options?.signal ?? call.signal })
  return await spendCredential(call, { getter, origin })
}
