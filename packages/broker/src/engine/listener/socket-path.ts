import { lstatSync } from 'node:fs'
import { isAbsolute } from 'node:path'
import { limits } from '@sandbox/protocol'
import { BrokerError } from '../errors.ts'

/**
 * Refuses a socket path that cannot work: relative, over 107 bytes as UTF-8 (the kernel cuts longer ones off
 * silently), with a NUL in it, or taken.
 * @throws BrokerError `socket_path_invalid`
 */
export function checkSocketPath(path: string): void {
  const problem = problemOf(path)
  if (problem !== undefined) throw new BrokerError('socket_path_invalid', `Socket path: ${problem}`)
}

function problemOf(path: unknown): string | undefined {
  if (typeof path !== 'string' || path === '') return 'must be a string'
  if (path.includes('\0')) return 'has a NUL character in it'
  if (!isAbsolute(path)) return `must be absolute: ${path}`
  const size = Buffer.byteLength(path)
  if (size > limits.SOCKET_PATH_BYTES) {
    return `is ${size} bytes, ${limits.SOCKET_PATH_BYTES} at most: use a shorter run root: ${path}`
  }
  // `bigint`: on Node 22 a plain stat of a socket spoils later imports.
  if (lstatSync(path, { bigint: true, throwIfNoEntry: false }) !== undefined) return `is taken: ${path}`
  return undefined
}
