import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, lchownSync, openSync, readdirSync, statSync, unlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { limits } from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'

/** Marks of this process. A mark must not be collected while its directory is ours. */
const held = new Set<Server>()

/** Longer than any connection on one machine takes. */
const ASK_MS = 5_000

/**
 * Takes a directory for this host alone and returns what gives it back.
 *
 * A mark is a listening Unix socket in the directory. The kernel closes it with its process, and tells whoever connects
 * whether somebody listens, in whatever container either of the two runs: nothing is guessed from process numbers or
 * clocks. A mark that outlived its process is seen and removed. Each host makes its own mark first and looks for others
 * then: two that start at once may both be refused, but never both run. It holds among hosts on one kernel; a
 * directory that two machines share is not protected.
 *
 * @throws SandboxPluginError `run_root_locked`; `root_refused` when no socket can be made in the directory
 */
export function lockForThisHost(what: string, directory: string): () => void {
  const own = `host.${process.pid}.${randomBytes(8).toString('hex')}.lock`
  const reach = reachable(directory, own)
  const path = join(directory, own)
  const server = listenAt(join(reach.base, own))
  const unlock = () => {
    unlinkIfThere(path)
    server?.close()
    if (server) held.delete(server)
  }
  try {
    if (server === undefined) throw noSocket(what, directory)
    chmodSync(path, 0o600)
    giveToOwnerOf(directory, path)
    for (const name of readdirSync(directory)) {
      const pid = name === own ? undefined : /^host\.(\d+)\.[\w.-]+\.lock$/.exec(name)?.[1]
      if (pid === undefined) continue
      if (isListening(join(reach.base, name))) throw locked(what, directory, pid)
      unlinkIfThere(join(directory, name))
    }
    return unlock
  } catch (cause) {
    unlock()
    throw cause
  } finally {
    reach.close()
  }
}

/** Nobody but its owner may connect to it, and the host after a root host that was killed may be the directory's account. */
function giveToOwnerOf(directory: string, path: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(directory)
  lchownSync(path, uid, gid)
}

/** Not `rmSync`: it looks at the file first, and on Node 22 a plain stat of a socket spoils later imports. */
function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** The path of a socket is short by law; a directory with a longer one is reached through its descriptor. */
function reachable(directory: string, name: string): { base: string; close(): void } {
  if (Buffer.byteLength(join(directory, name)) <= limits.SOCKET_PATH_BYTES) {
    return { base: directory, close: () => {} }
  }
  const descriptor = openSync(directory, 'r')
  return { base: `/proc/self/fd/${descriptor}`, close: () => closeSync(descriptor) }
}

/** Binds at once, on Node and on Bun; only the news of it comes later. */
function listenAt(path: string): Server | undefined {
  const server = createServer((caller) => caller.on('error', () => {}).end())
  server.on('error', () => {})
  try {
    server.listen({ path, exclusive: true })
  } catch {
    return undefined
  }
  if (!server.listening) return undefined
  server.unref()
  held.add(server)
  return server
}

/** Connects in a thread, because whoever constructs a host cannot wait for an event. */
const ASK = `
const { workerData: { path, answer } } = require('node:worker_threads')
const tell = (value) => { Atomics.store(answer, 0, value); Atomics.notify(answer, 0) }
const socket = require('node:net').connect(path)
socket.on('connect', () => { tell(1); socket.destroy() })
socket.on('error', ({ code }) => tell(code === 'ECONNREFUSED' || code === 'ENOENT' ? 2 : 1))
`

/** False only when the kernel says that nobody listens there. */
function isListening(path: string): boolean {
  const answer = new Int32Array(new SharedArrayBuffer(4))
  const thread = new Worker(ASK, { eval: true, workerData: { path, answer } })
  thread.on('error', () => {})
  thread.unref()
  Atomics.wait(answer, 0, 0, ASK_MS)
  return answer[0] !== 2
}

function locked(what: string, directory: string, pid: string): SandboxPluginError {
  return new SandboxPluginError(
    'run_root_locked',
    `The ${what} ${directory} is used by another host (process ${pid}). Stop that host, or give this one a ${what} of its own. Where no such process is seen, it runs in another container and counts itself that way.`,
  )
}

function noSocket(what: string, directory: string): SandboxPluginError {
  return new SandboxPluginError(
    'root_refused',
    `The ${what} ${directory} cannot hold a Unix socket. Choose a directory on a local Linux file system.`,
  )
}
