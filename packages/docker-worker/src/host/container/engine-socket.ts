import { isAbsolute } from 'node:path'
import { DriverError } from '../../errors.ts'

/** Where an engine listens when nothing says otherwise. */
const DEFAULT_SOCKET = '/var/run/docker.sock'

/**
 * The engine's socket as the environment names it: `DOCKER_HOST` when that is a local Unix socket, else
 * `/var/run/docker.sock`. Contexts of the docker command are not read. Throws `engine_remote` for anything else,
 * since directories of this machine cannot be mounted by another one.
 */
export function engineSocketPath(env: { readonly DOCKER_HOST?: string | undefined }): string {
  const host = env.DOCKER_HOST
  if (host === undefined || host === '') return DEFAULT_SOCKET
  const path = host.startsWith('unix://') ? host.slice('unix://'.length) : ''
  if (isAbsolute(path)) return path
  throw new DriverError(
    'engine_remote',
    `DOCKER_HOST names an engine that is not a local Unix socket (${scheme(host)}). ` +
      'Unset it, set it to unix:///path/of/docker.sock, or name the socket (option engineSocket, --socket).',
  )
}

/** Only the scheme: the rest of an address can hold a user and a password. */
function scheme(host: string): string {
  const found = /^[a-z]+:\/\//i.exec(host)
  return found ? `${found[0]}…` : 'no scheme'
}
