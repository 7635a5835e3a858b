import { type IncomingMessage, request } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * The two long-lived calls, over plain HTTP on the engine's socket and not through dockerode: its `wait` never
 * settles when the engine dies, and its `attach` sends a body that some engines feed to the worker.
 */

/** Where to find an engine's API. */
export interface EngineAddress {
  readonly socketPath: string
  /** `v1.41`, without slashes. */
  readonly version: string
}

/** A wait that the engine has registered. */
export interface PendingExit {
  /** The exit code; `undefined` when the connection ended without one. Never rejects. */
  readonly code: Promise<number | undefined>
  /** Ends the connection. */
  close(): void
}

/**
 * Waits for a container's next exit. To be called before start: resolves once the engine has registered the wait,
 * so that no exit is missed. Rejects with the connection's error or an {@link EngineStatus}.
 */
export function waitNextExit(engine: EngineAddress, id: string): Promise<PendingExit> {
  return new Promise((resolve, reject) => {
    const call = request({
      socketPath: engine.socketPath,
      method: 'POST',
      path: `/${engine.version}/containers/${id}/wait?condition=next-exit`,
      headers: { host: 'engine', 'content-length': 0 },
      agent: false,
    })
    call.on('error', reject)
    call.on('response', (answer) => {
      if (answer.statusCode !== 200) {
        answer.resume()
        reject(new EngineStatus(answer.statusCode ?? 0))
        return
      }
      resolve({ code: exitCode(answer), close: () => call.destroy() })
    })
    call.end()
  })
}

/** An engine's answer other than the one expected. */
class EngineStatus extends Error {
  readonly statusCode: number
  constructor(statusCode: number) {
    super(`status ${statusCode}`)
    this.statusCode = statusCode
  }
}

async function exitCode(answer: IncomingMessage): Promise<number | undefined> {
  try {
    let body = ''
    for await (const chunk of answer) {
      body += String(chunk)
      if (body.length > 64 * 1024) return undefined
    }
    const read: unknown = JSON.parse(body)
    const code = (read as { StatusCode?: unknown } | null)?.StatusCode
    return typeof code === 'number' ? code : undefined
  } catch {
    return undefined
  }
}

/** Takes bytes that a container wrote, and where: 1 is stdout, 2 is stderr. */
export type OutputSink = (chunk: Uint8Array, stream: number) => void

/** An attached output stream, drained until it ends. */
export interface AttachedOutput {
  /** Settles when the stream has ended, which says nothing about the container. Never rejects. */
  readonly ended: Promise<void>
  /** Destroys the connection. Do it before a kill: an engine with an undrained stream cannot remove its container. */
  close(): void
}

/**
 * Attaches to stdout and stderr and hands every byte to `sink` at once, never pausing. Resolves when attached.
 * Rejects with the connection's error or an {@link EngineStatus}.
 */
export function attachOutput(engine: EngineAddress, id: string, sink: OutputSink): Promise<AttachedOutput> {
  return new Promise((resolve, reject) => {
    const call = request({
      socketPath: engine.socketPath,
      method: 'POST',
      path: `/${engine.version}/containers/${id}/attach?stream=1&stdout=1&stderr=1`,
      headers: { host: 'engine', connection: 'Upgrade', upgrade: 'tcp', 'content-length': 0 },
      agent: false,
    })
    call.on('error', reject)
    call.on('response', (answer) => {
      answer.resume()
      reject(new EngineStatus(answer.statusCode ?? 0))
    })
    call.on('upgrade', (_answer, socket: Duplex, head: Buffer) => {
      resolve(drain(socket, head, sink))
    })
    call.end()
  })
}

function drain(socket: Duplex, head: Buffer, sink: OutputSink): AttachedOutput {
  const take = createDemux(sink, () => socket.destroy())
  const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.on('error', () => socket.destroy())
  socket.on('end', () => socket.destroy())
  socket.on('data', take)
  if (head.length > 0) take(head)
  return { ended, close: () => socket.destroy() }
}

const FRAME_HEAD_BYTES = 8

/**
 * Takes the frames of an attached stream apart: `[stream, 0, 0, 0, size as 4 bytes, big-endian]`, then the payload.
 * Holds nothing but a frame's head. `broken` is called once for a head that is none.
 */
export function createDemux(sink: OutputSink, broken: () => void) {
  const head = Buffer.alloc(FRAME_HEAD_BYTES)
  let headBytes = 0
  let payloadBytes = 0
  let dead = false

  function readHead(chunk: Uint8Array): number {
    const wanted = Math.min(FRAME_HEAD_BYTES - headBytes, chunk.length)
    head.set(chunk.subarray(0, wanted), headBytes)
    headBytes += wanted
    if (headBytes === FRAME_HEAD_BYTES) {
      headBytes = 0
      payloadBytes = head.readUInt32BE(4)
      dead = head.readUIntBE(1, 3) !== 0 || head.readUInt8(0) > 2
      if (dead) broken()
    }
    return wanted
  }

  return (chunk: Uint8Array): void => {
    let rest = chunk
    while (rest.length > 0 && !dead) {
      if (payloadBytes === 0) {
        rest = rest.subarray(readHead(rest))
        continue
      }
      const payload = rest.subarray(0, payloadBytes)
      sink(payload, head[0] ?? 0)
      payloadBytes -= payload.length
      rest = rest.subarray(payload.length)
    }
  }
}
