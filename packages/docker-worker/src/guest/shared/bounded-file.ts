import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants

/**
 * The first `maxBytes` of a regular file and its whole size, or `undefined` for anything else. Follows no link in the
 * last part of the path, waits for no pipe. Throws what the file system throws, `ENOENT` included.
 */
export function readFileHead(path: string, maxBytes: number): { bytes: Buffer; size: number } | undefined {
  const file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const stat = fstatSync(file)
    if (!stat.isFile()) return undefined
    const bytes = Buffer.alloc(Math.min(stat.size, maxBytes))
    return { bytes: bytes.subarray(0, readSync(file, bytes, 0, bytes.length, 0)), size: stat.size }
  } finally {
    closeSync(file)
  }
}
