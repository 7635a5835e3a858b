import type { CredentialGetter } from '../credential-source.ts'
import { namedSource } from '../traced-getter.ts'

/**
 * A credential from an environment variable, read on each call. A variable that is not set, or empty, is no
 * credential.
 *
 * `env`: where to look; omitted = `process.env`.
 */
export function fromEnv(
  name: string,
  options: { env?: Readonly<Record<string, string | undefined>> } = {},
): CredentialGetter {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new TypeError('fromEnv needs the name of a variable')
  const { env = process.env } = options
  return namedSource(`env:${name}`, () => (Object.hasOwn(env, name) ? env[name] : undefined))
}
