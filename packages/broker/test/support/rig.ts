import { join } from 'node:path'
import { type SealedTurn, WORKER_NONCE_HEADER, type WorkerHello } from '@sandbox/protocol'
import {
  canary,
  chatText,
  type ScriptedUpstream,
  scriptedUpstream,
  soundPosture,
  tempDir,
} from '@sandbox/testing'
import type { BrokerOptions, CallEvent, DeskTurn, SealedBroker, TurnInput } from '../../src/index.ts'
import { openBroker, type SealedTimes } from '../../src/sealed-broker.ts'
import { callHeaders, Guest, type GuestAnswer } from './guest.ts'

/** A sealed broker on a real socket, with a real upstream behind it. */
export interface Rig extends AsyncDisposable {
  readonly broker: SealedBroker
  readonly upstream: ScriptedUpstream
  readonly path: string
  readonly events: CallEvent[]
  /** What the default getter answers. */
  readonly secret: string
  /** Resolves when a call has been reported that the test accepts. */
  reported(match: (event: CallEvent) => boolean): Promise<CallEvent>
  guest(options?: { readonly reading?: boolean }): Guest
}

/** Opens a rig. */
export async function openRig(
  options: Partial<BrokerOptions> = {},
  times: Partial<SealedTimes> = {},
): Promise<Rig> {
  const dir = tempDir()
  const upstream = await scriptedUpstream(() => chatText('hello'))
  const events: CallEvent[] = []
  const watchers = new Set<() => void>()
  const secret = canary()
  const guests: Guest[] = []
  const path = join(dir.path, 'worker.sock')
  const broker = openBroker(
    {
      modelUrl: `${upstream.url}/v1/chat/completions`,
      model: 'host-model',
      apiKey: () => secret,
      allowHttp: true,
      onCall: (event) => {
        events.push(event)
        for (const wake of [...watchers]) wake()
      },
      ...options,
    },
    { times },
  )
  await broker.listen(path)
  return {
    broker,
    upstream,
    path,
    events,
    secret,
    reported: (match) =>
      new Promise((done) => {
        const look = () => {
          const found = events.find(match)
          if (found === undefined) return
          watchers.delete(look)
          done(found)
        }
        watchers.add(look)
        look()
      }),
    guest: (guestOptions) => {
      const guest = new Guest(path, guestOptions)
      guests.push(guest)
      return guest
    },
    [Symbol.asyncDispose]: async () => {
      for (const guest of guests) guest[Symbol.dispose]()
      await broker.stop()
      await upstream[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

/** A turn to bind. */
export function turnInput(input: Partial<TurnInput> = {}): TurnInput {
  return {
    turnId: 't-1',
    context: { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } },
    signal: new AbortController().signal,
    ...input,
  }
}

/** A model call that every check admits. */
export const MODEL_BODY = { messages: [{ role: 'user', content: 'hi' }] }

/** One `/model` call on a connection of its own. */
export async function modelCall(rig: Rig, nonce: string, body: unknown = MODEL_BODY): Promise<GuestAnswer> {
  using guest = rig.guest()
  return await guest.call({ path: '/model', headers: callHeaders(nonce), body })
}

/** A hello as a sealed worker sends it. */
export function helloBody(changes: Record<string, unknown> = {}): WorkerHello {
  return {
    protocol: 1,
    mode: 'sealed',
    posture: soundPosture(),
    ...changes,
  } as WorkerHello
}

/** Says hello and returns the worker headers. */
export async function greet(guest: Guest): Promise<Record<string, string>> {
  const welcome = await guest.call({ path: '/worker/hello', body: helloBody() })
  return { [WORKER_NONCE_HEADER]: welcome.json.workerNonce }
}

/** A turn to deliver. */
export function deskTurn(changes: Partial<SealedTurn> = {}): DeskTurn {
  return {
    turnId: 't-1',
    nonce: '0123456789abcdef',
    text: 'hi',
    speaker: { id: 'u-ann', name: 'Ann' },
    model: 'host-model',
    timeZone: 'Europe/Berlin',
    reset: false,
    tools: [],
    mcp: [],
    ...changes,
  }
}
