import { limits, RUN_DIR, SOCKET_NAME, WORKSPACE_DIR } from '@sandbox/protocol'
import { GuestError } from '../shared/errors.ts'

/** Where the worker finds its host and its files. */
export interface WorkerArguments {
  readonly socket: string
  readonly workspace: string
}

/**
 * Reads `[--socket PATH] [--workspace PATH]`; the defaults are the paths inside a container. Throws a
 * {@link GuestError} `usage`.
 */
export function readArguments(args: readonly string[]): WorkerArguments {
  const paths = new Map([
    ['--socket', `${RUN_DIR}/${SOCKET_NAME}`],
    ['--workspace', WORKSPACE_DIR],
  ])
  for (let index = 0; index < args.length; index += 2) {
    const name = args[index] ?? ''
    const path = args[index + 1]
    if (!paths.has(name)) throw new GuestError('usage', `unknown argument: ${name}`)
    if (path === undefined || !path.startsWith('/')) {
      throw new GuestError('usage', `${name} needs an absolute path`)
    }
    paths.set(name, path)
  }
  const socket = paths.get('--socket') ?? ''
  if (Buffer.byteLength(socket) > limits.SOCKET_PATH_BYTES) {
    throw new GuestError('usage', `--socket is over ${limits.SOCKET_PATH_BYTES} bytes`)
  }
  return { socket, workspace: paths.get('--workspace') ?? '' }
}
