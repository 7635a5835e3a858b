import type { CredentialError } from '@sandbox/credential-scope'
import { type KeyFile, keyFile } from '@sandbox/credential-scope/sources'
import type { OperatorConfig } from './read-bot-file.ts'
import { providerOrigins } from './routes.ts'

/** The key file of a configuration; its rules may name the providers of that configuration and no others. */
export function openKeys(
  config: Pick<OperatorConfig, 'keys' | 'providers'>,
  options: {
    readonly onProblem?: (problem: CredentialError) => void
    readonly env?: NodeJS.ProcessEnv
  } = {},
): KeyFile {
  const { keys: path, providers = {} } = config
  return keyFile({ path, ...options, providers: providerOrigins(providers) })
}
