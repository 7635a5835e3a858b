import {
  limits,
  type PiHeartbeatAnswer,
  readPiProgress,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
} from '@sandbox/protocol'
import type { BodyShare } from '../call/body-budget.ts'
import { linkCallSignal } from '../call/call-signal.ts'
import { readBody } from '../call/read-body.ts'
import { CallRefusal } from '../call/refusal.ts'
import { type HeadPolicy, SEALED_HEADERS } from '../call/request-head.ts'
import type { WorkerCall, WorkerRoute } from '../call/route.ts'
import type { DeskWork } from './desk-messages.ts'
import { parseMessage } from './parse-message.ts'
import type { OpenDesk } from './worker-desk.ts'

/** The guest's side of a desk, of whatever mode. */
export type GuestDesk = Pick<
  OpenDesk<DeskWork, unknown>,
  | 'acknowledge'
  | 'beginResult'
  | 'checkNonce'
  | 'expectHello'
  | 'isWanted'
  | 'next'
  | 'resultBytes'
  | 'takeHello'
  | 'takeProgress'
  | 'takeResult'
  | 'written'
>

/** What the worker routes need besides their desk. */
export interface WorkerRouteOptions {
  readonly desk: GuestDesk
  readonly placeholder: string
  /** How long a message may take, in milliseconds; a poll may take longer by the time that it is held. */
  readonly callMs: number
  readonly pollMs: number
  /** Whether headers that are not on the list are ignored. Omitted = they are refused. */
  readonly anyHeaders?: boolean
  /** The memory that results are read into. Omitted = without limit. */
  readonly bodies?: BodyShare
}

type RouteName = keyof typeof WORKER_ROUTES

/** The routes on which a worker reports to its desk, by path. */
export function workerRoutes(options: WorkerRouteOptions): [path: string, route: WorkerRoute][] {
  const { desk } = options
  return [
    row(options, 'hello', (call) => hello(desk, call)),
    row(options, 'next', async (call) => {
      desk.checkNonce(nonceOf(call))
      return desk.written(await desk.next(call.signal))
    }),
    row(options, 'ack', async (call) => {
      desk.checkNonce(nonceOf(call))
      const body = await readMessage(call, SMALL)
      desk.acknowledge(body.turnId)
      return {}
    }),
    row(options, 'result', (call) => result(options, call)),
  ]
}

/** The routes that a worker of many turns has besides {@link workerRoutes}. `config` answers that route. */
export function lastingWorkerRoutes(
  options: WorkerRouteOptions & { config(): object },
): [path: string, route: WorkerRoute][] {
  const { desk } = options
  return [
    row(options, 'heartbeat', async (call): Promise<PiHeartbeatAnswer> => {
      desk.checkNonce(nonceOf(call))
      const { turnId } = await readMessage(call, SMALL)
      return { over: turnId !== undefined && !desk.isWanted(turnId) }
    }),
    row(options, 'progress', async (call) => {
      desk.checkNonce(nonceOf(call))
      const piece = readPiProgress(await readMessage(call, SMALL))
      if (piece === undefined) throw new CallRefusal('body_invalid')
      desk.takeProgress(piece)
      return {}
    }),
    row(options, 'config', async (call) => {
      desk.checkNonce(nonceOf(call))
      return options.config()
    }),
  ]
}

const SMALL = { limitBytes: limits.WORKER_MESSAGE_BYTES }

function row(
  options: WorkerRouteOptions,
  name: RouteName,
  run: WorkerRoute['run'],
): [path: string, route: WorkerRoute] {
  const callMs = options.callMs + (name === 'next' ? options.pollMs : 0)
  return [WORKER_ROUTES[name], { kind: 'worker', name, policy: policyOf(name, options), callMs, run }]
}

function policyOf(name: RouteName, { placeholder, anyHeaders }: WorkerRouteOptions): HeadPolicy {
  return {
    method: name === 'next' || name === 'config' ? 'GET' : 'POST',
    headers: anyHeaders === true ? 'any' : new Set([...SEALED_HEADERS, WORKER_NONCE_HEADER]),
    placeholder,
  }
}

async function hello(desk: GuestDesk, call: WorkerCall): Promise<unknown> {
  desk.expectHello()
  let body: Record<string, unknown> | undefined
  try {
    body = await readMessage(call, SMALL)
  } catch (error) {
    // A guest that left before its hello was complete has not said anything.
    if (!(error instanceof CallRefusal) || call.request.signal.aborted) throw error
  }
  return desk.takeHello(body)
}

async function result({ desk, bodies }: WorkerRouteOptions, call: WorkerCall): Promise<unknown> {
  desk.checkNonce(nonceOf(call))
  const reading = desk.beginResult()
  const { signal, detach } = linkCallSignal({ turn: reading.signal, guest: call.signal })
  try {
    const bounds = { limitBytes: desk.resultBytes, ...(bodies === undefined ? {} : { bodies }) }
    await desk.takeResult(await readMessage({ ...call, signal }, bounds), signal)
    return {}
  } finally {
    detach()
    reading.end()
  }
}

/**
 * Reads a worker's message: a JSON object. With `bodies`, it waits for the memory.
 * @throws CallRefusal `body_too_large`, `body_invalid`. Rejects with the signal's reason when that fires.
 */
export async function readMessage(
  { request, head, record, signal }: WorkerCall,
  { limitBytes, bodies }: { readonly limitBytes: number; readonly bodies?: BodyShare },
): Promise<Record<string, unknown>> {
  const { contentLength } = head
  if (contentLength !== undefined && contentLength > limitBytes) {
    throw new CallRefusal('body_too_large', { limitBytes })
  }
  const memory = await bodies?.reserve(contentLength ?? limitBytes, signal)
  try {
    const bytes = await readBody({ body: request.body, contentLength, limitBytes, signal })
    record.requestBytes = bytes.byteLength
    return await parseMessage(bytes, signal)
  } finally {
    memory?.release()
  }
}

function nonceOf(call: WorkerCall): string | undefined {
  return call.head.headers.get(WORKER_NONCE_HEADER)
}
