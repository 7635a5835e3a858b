import { limits, WORKER_NONCE_HEADER, WORKER_ROUTES } from '@sandbox/protocol'
import { linkCallSignal } from '../call/call-signal.ts'
import { parseObject, readBody } from '../call/read-body.ts'
import { CallRefusal } from '../call/refusal.ts'
import { type HeadPolicy, SEALED_HEADERS } from '../call/request-head.ts'
import type { WorkerCall, WorkerRoute } from '../call/route.ts'
import type { DeskWork } from './desk-messages.ts'
import type { OpenDesk } from './worker-desk.ts'

/** The guest's side of a desk, of whatever mode. */
export type GuestDesk = Pick<
  OpenDesk<DeskWork, unknown>,
  | 'acknowledge'
  | 'beginResult'
  | 'checkNonce'
  | 'expectHello'
  | 'next'
  | 'resultBytes'
  | 'takeHello'
  | 'takeResult'
>

/** What the worker routes need besides their desk. */
export interface WorkerRouteOptions {
  readonly desk: GuestDesk
  readonly placeholder: string
  /** How long a message may take, in milliseconds; a poll may take longer by the time that it is held. */
  readonly callMs: number
  readonly pollMs: number
}

/** The routes on which a worker reports to its desk, by path. */
export function workerRoutes(options: WorkerRouteOptions): [path: string, route: WorkerRoute][] {
  const { desk } = options
  const row = (name: 'hello' | 'next' | 'ack' | 'result', run: WorkerRoute['run']): [string, WorkerRoute] => [
    WORKER_ROUTES[name],
    {
      kind: 'worker',
      name,
      policy: policyOf(name, options.placeholder),
      callMs: options.callMs + (name === 'next' ? options.pollMs : 0),
      run,
    },
  ]
  return [
    row('hello', (call) => hello(desk, call)),
    row('next', async (call) => {
      desk.checkNonce(nonceOf(call))
      return desk.next(call.signal)
    }),
    row('ack', async (call) => {
      desk.checkNonce(nonceOf(call))
      const body = await readMessage(call, limits.WORKER_MESSAGE_BYTES)
      desk.acknowledge(body.turnId)
      return {}
    }),
    row('result', (call) => result(desk, call)),
  ]
}

function policyOf(name: string, placeholder: string): HeadPolicy {
  return {
    method: name === 'next' ? 'GET' : 'POST',
    headers: new Set([...SEALED_HEADERS, WORKER_NONCE_HEADER]),
    placeholder,
  }
}

async function hello(desk: GuestDesk, call: WorkerCall): Promise<unknown> {
  desk.expectHello()
  let body: Record<string, unknown> | undefined
  try {
    body = await readMessage(call, limits.WORKER_MESSAGE_BYTES)
  } catch (error) {
    // A guest that left before its hello was complete has not said anything.
    if (!(error instanceof CallRefusal) || call.request.signal.aborted) throw error
  }
  return desk.takeHello(body)
}

async function result(desk: GuestDesk, call: WorkerCall): Promise<unknown> {
  desk.checkNonce(nonceOf(call))
  const reading = desk.beginResult()
  const { signal, detach } = linkCallSignal({ turn: reading.signal, guest: call.signal })
  try {
    desk.takeResult(await readMessage({ ...call, signal }, desk.resultBytes))
    return {}
  } finally {
    detach()
    reading.end()
  }
}

async function readMessage(
  { request, head, record, signal }: WorkerCall,
  limitBytes: number,
): Promise<Record<string, unknown>> {
  const { contentLength } = head
  const bytes = await readBody({ body: request.body, contentLength, limitBytes, signal })
  record.requestBytes = bytes.byteLength
  return parseObject(bytes)
}

function nonceOf(call: WorkerCall): string | undefined {
  return call.head.headers.get(WORKER_NONCE_HEADER)
}
