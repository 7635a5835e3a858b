import { limits, RUN_DIR, SOCKET_NAME, WORKSPACE_DIR } from '@sandbox/protocol'
import { GuestError } from './errors.ts'

/** Where the worker finds its host and its files. */
export interface WorkerArguments<More extends string = never> {
  readonly socket: string
  readonly workspace: string
  /** The paths that this kind of worker takes besides, by name without dashes. */
  readonly more: Readonly<Record<More, string>>
}

/**
 * Reads `[--socket PATH] [--workspace PATH]`, and `[--NAME PATH]` for each name of `more`, whose values are the
 * defaults; those of the first two are the paths inside a container. Throws a {@link GuestError} `usage`.
 */
export function readArguments<More extends string = never>(
  args: readonly string[],
  more: Readonly<Record<More, string>> = {} as Readonly<Record<More, string>>,
): WorkerArguments<More> {
  const defaults = { socket: `${RUN_DIR}/${SOCKET_NAME}`, workspace: WORKSPACE_DIR, ...more }
  const paths = new Map<string, string>(Object.entries(defaults))
  for (let index = 0; index < args.length; index += 2) {
    const name = args[index] ?? ''
    const path = args[index + 1]
    if (!name.startsWith('--') || !paths.has(name.slice(2))) {
      throw new GuestError('usage', `unknown argument: ${name}`)
    }
    if (path === undefined || !path.startsWith('/')) {
      throw new GuestError('usage', `${name} needs an absolute path`)
    }
    paths.set(name.slice(2), path)
  }
  const { socket, workspace, ...others } = Object.fromEntries(paths) as Record<More, string> & typeof defaults
  if (Buffer.byteLength(socket) > limits.SOCKET_PATH_BYTES) {
    throw new GuestError('usage', `--socket is over ${limits.SOCKET_PATH_BYTES} bytes`)
  }
  return { socket, workspace, more: others as unknown as Record<More, string> }
}
