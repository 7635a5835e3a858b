import { join } from 'node:path'
import { WORKER_NONCE_HEADER, type WorkerHello } from '@sandbox/protocol'
import {
  canary,
  Guest,
  type GuestAnswer,
  type ScriptedUpstream,
  scriptedUpstream,
  soundPosture,
  tempDir,
} from '@sandbox/testing'
import type { PiDeskTurn, PiHostContext, PiSandboxBrokerOptions } from '../../src/index.ts'
import { PiSandboxBroker, type PiTimes } from '../../src/pi-broker.ts'
import { answers } from './messages-service.ts'

type CallEvent = Parameters<NonNullable<PiSandboxBrokerOptions['onCall']>>[0]

/** A Pi broker on a real socket, with a real upstream behind it. */
export interface Rig extends AsyncDisposable {
  readonly broker: PiSandboxBroker
  readonly upstream: ScriptedUpstream
  readonly path: string
  readonly events: CallEvent[]
  /** What the default getter answers. */
  readonly secret: string
  /** Resolves when a call has been reported that the test accepts. */
  reported(match: (event: CallEvent) => boolean): Promise<CallEvent>
  guest(): Guest
}

/** Opens a rig. */
export async function openRig(
  options: Partial<PiSandboxBrokerOptions> = {},
  times: Partial<PiTimes> = {},
): Promise<Rig> {
  const dir = tempDir()
  const upstream = await scriptedUpstream(answers([{ type: 'text', text: 'hello' }]))
  const events: CallEvent[] = []
  const watchers = new Set<() => void>()
  const secret = canary()
  const guests: Guest[] = []
  const path = join(dir.path, 'worker.sock')
  const broker = new PiSandboxBroker(
    {
      model: 'host-model',
      upstream: upstream.url,
      allowHttp: true,
      oauthToken: () => secret,
      onCall: (event) => {
        events.push(event)
        for (const wake of [...watchers]) wake()
      },
      ...options,
    },
    times,
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
    guest: () => {
      const guest = new Guest(path)
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

/** A context to bind. */
export function context(changes: Partial<PiHostContext> = {}): PiHostContext {
  return {
    channel: 'web:room',
    speaker: { id: 'u-ann', name: 'Ann' },
    profile: 'default',
    deadline: performance.now() + 60_000,
    signal: new AbortController().signal,
    ...changes,
  }
}

/** The smallest request. */
export const ASK = { model: 'claude-guest', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }
export const MESSAGES = '/anthropic/v1/messages'

/** One call on a connection of its own. */
export async function call(
  rig: Rig,
  nonce: string | undefined,
  more: {
    readonly path?: string
    readonly body?: unknown
    readonly method?: string
    readonly headers?: Record<string, string>
  } = {},
): Promise<GuestAnswer> {
  using guest = rig.guest()
  const { path = MESSAGES, body = ASK, method = 'POST', headers = {} } = more
  return await guest.call({
    path,
    method,
    ...(method === 'GET' ? {} : { body }),
    headers: { ...(nonce === undefined ? {} : { 'x-sandbox-turn': nonce }), ...headers },
  })
}

/** What the upstream got for a request that is let through. */
export async function forwarded(
  rig: Rig,
  nonce: string,
  body: unknown,
  headers: Record<string, string> = {},
) {
  const { length } = rig.upstream.seen
  const answer = await call(rig, nonce, { body, headers })
  if (answer.status !== 200) throw new TypeError(`${answer.status} ${answer.text}`)
  const seen = rig.upstream.seen[length]
  return { text: String(seen?.body), json: JSON.parse(String(seen?.body)), headers: seen?.headers ?? {} }
}

/** A hello as a Pi worker sends it. */
export function helloBody(changes: Record<string, unknown> = {}): WorkerHello {
  return {
    protocol: 1,
    mode: 'pi',
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
export function deskTurn(changes: Partial<PiDeskTurn> = {}): PiDeskTurn {
  return {
    turnId: 't-1',
    nonce: '0123456789abcdef',
    text: 'hi',
    speaker: { id: 'u-ann', name: 'Ann' },
    profile: 'default',
    thinking: 'low',
    model: 'host-model',
    timeZone: 'Europe/Berlin',
    attachments: [],
    images: [],
    mcp: [],
    ...changes,
  }
}
