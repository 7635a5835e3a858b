import { readdirSync, readlinkSync } from 'node:fs'
import { RUN_DIR } from '@sandbox/protocol'
import { lines, readText } from './posture-text.ts'

/** Where sockets of programs usually are. The workspace is left alone: it may be full of anything. */
const PLACES = ['', '/dev', '/run', RUN_DIR, '/tmp', '/var/run']

/** The kernel's flag of a socket that listens. */
const LISTENS = 0x10000

/**
 * Lists the sockets that this process could talk to: files in the usual places, sockets of its network namespace that
 * listen, and descriptors that it was started with.
 */
export function readSockets(self: string, root: string): string[] {
  const top = root === '/' ? '' : root
  const files = PLACES.flatMap((place) => socketFiles(`${top}${place}`).map((name) => `${place}/${name}`))
  const found = [...files, ...listening(readText(`${self}/net/unix`)), ...inherited(`${self}/fd`)]
  return [...new Set(found)].sort()
}

function socketFiles(directory: string): string[] {
  try {
    const entries = readdirSync(directory === '' ? '/' : directory, { withFileTypes: true })
    return entries.filter((entry) => entry.isSocket()).map(({ name }) => name)
  } catch {
    return []
  }
}

/** `/proc/net/unix`: a head, then `address: references protocol flags type state inode path`. */
function listening(text: string): string[] {
  return lines(text)
    .slice(1)
    .flatMap((line) => {
      const [, , , flags = '0', , , , ...path] = line.trim().split(/\s+/)
      const name = path.join(' ')
      return name !== '' && (Number.parseInt(flags, 16) & LISTENS) !== 0 ? [name] : []
    })
}

function inherited(directory: string): string[] {
  try {
    return readdirSync(directory).flatMap((fd) => (socketLink(`${directory}/${fd}`) ? [`fd:${fd}`] : []))
  } catch {
    return []
  }
}

function socketLink(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:')
  } catch {
    return false
  }
}
