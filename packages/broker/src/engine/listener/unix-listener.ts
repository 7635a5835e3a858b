import { chmodSync, chownSync, unlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { BrokerHandler } from '../call/exchange.ts'
import { BrokerError } from '../errors.ts'
import { NodeAdapter } from './node-adapter.ts'
import { checkSocketPath } from './socket-path.ts'

/** Bounds of a listener. Times in milliseconds. */
export interface ListenerLimits {
  /** Open connections; more are closed at once. */
  readonly connections: number
  /** From a request's first byte, or from the connection's start, to the end of its head. */
  readonly headersMs: number
  /** How long an answer waits for a guest that does not read. Bodies and calls are timed by who reads them. */
  readonly drainMs: number
}

/** What a worker's listener allows. */
export const LISTENER_LIMITS: ListenerLimits = { connections: 16, headersMs: 10_000, drainMs: 30_000 }

const MAX_HEAD_BYTES = 16 * 1024

/** Who the socket belongs to. */
export interface SocketOwner {
  readonly uid: number
  readonly gid: number
}

/**
 * HTTP/1.1 on a Unix socket, mode 0600. Connections are kept alive. `node:http` refuses malformed framing; the
 * adapter and the call pipeline refuse what it admits.
 */
export class UnixListener {
  readonly #adapter: NodeAdapter
  readonly #limits: ListenerLimits
  readonly #sockets = new Set<Socket>()
  readonly #server: Server
  #path: string | undefined
  #stopping = false
  #stopped: Promise<void> | undefined

  constructor(handler: BrokerHandler, limits: ListenerLimits = LISTENER_LIMITS) {
    this.#limits = limits
    this.#adapter = new NodeAdapter({
      handler,
      drainMs: limits.drainMs,
      onIdle: (socket) => {
        if (this.#stopping) socket.destroy()
      },
    })
    this.#server = createServer({
      insecureHTTPParser: false,
      requireHostHeader: false,
      maxHeaderSize: MAX_HEAD_BYTES,
      headersTimeout: limits.headersMs,
      requestTimeout: 0,
      connectionsCheckingInterval: Math.max(50, Math.min(1000, limits.headersMs / 4)),
      // The socket has one user, and a connection less would save nothing.
      keepAliveTimeout: 0,
    })
    // Some versions of Node drop headers beyond the thousandth unseen. How many may come is checked later.
    this.#server.maxHeadersCount = 0
    // Such as no file descriptor for the next connection: that one is lost, the host is not.
    this.#server.on('error', () => {})
    this.#server.on('connection', (socket) => this.#accept(socket))
    this.#server.on('request', this.#adapter.serve)
    // Without these, node:http would invite the body, or answer by itself, before anything was checked.
    this.#server.on('checkContinue', this.#adapter.serve)
    this.#server.on('checkExpectation', this.#adapter.serve)
    this.#server.on('clientError', (_, socket) => refuse(socket as Socket))
  }

  /**
   * Opens the socket.
   * @throws BrokerError `socket_path_invalid`, `already_listening`, `listen_failed` (then nothing is left open).
   */
  async listen(path: string, owner?: SocketOwner): Promise<void> {
    if (this.#path !== undefined || this.#stopping) {
      throw new BrokerError('already_listening', 'A listener opens one socket, once.')
    }
    checkSocketPath(path)
    this.#path = path
    try {
      await opened(this.#server, path)
      chmodSync(path, 0o600)
      if (owner !== undefined) chownSync(path, owner.uid, owner.gid)
    } catch (cause) {
      await this.stop()
      throw new BrokerError('listen_failed', `The socket could not be opened: ${path}`, { cause })
    }
  }

  /**
   * Closes the socket and removes it. `force` ends every connection; without it, those that are at work may
   * finish. Idempotent; a forced stop hastens a gentle one.
   */
  stop(force = true): Promise<void> {
    this.#stopping = true
    this.#stopped ??= this.#close()
    for (const socket of this.#sockets) {
      if (force || !this.#adapter.isWorking(socket)) socket.destroy()
    }
    return this.#stopped
  }

  #accept(socket: Socket): void {
    if (this.#stopping || this.#sockets.size >= this.#limits.connections) {
      socket.destroy()
      return
    }
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
  }

  async #close(): Promise<void> {
    await new Promise<void>((done) => {
      // Called back with an error when it never listened: then there is nothing to wait for.
      this.#server.close(() => done())
    })
    if (this.#path !== undefined) unlinkIfThere(this.#path)
  }
}

/** Not `rmSync`: it looks at the file first, and on Node 22 a plain stat of a socket spoils later imports. */
function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function opened(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
}

/** Bytes that are no HTTP request. */
function refuse(socket: Socket): void {
  if (socket.writable && !socket.destroyed && socket.bytesWritten === 0) {
    socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n')
  }
  socket.destroySoon()
}
