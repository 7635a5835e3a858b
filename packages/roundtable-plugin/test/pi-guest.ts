import { randomBytes } from 'node:crypto'
import { request } from 'node:http'
import { join } from 'node:path'
import type { Driver, Worker, WorkerExit, WorkerSpec } from '@sandbox/docker-worker'
import { DriverError } from '@sandbox/docker-worker'
import {
  BROKER_HOST,
  type PiOutcome,
  type PiTurn,
  type PiWelcome,
  PROTOCOL_VERSION,
  SOCKET_NAME,
  TURN_NONCE_HEADER,
  WORKER_NONCE_HEADER,
} from '@sandbox/protocol'
import { account } from './account.ts'

/** What a guest of a test does with a turn; ends early when the guest is killed. */
export type GuestScript = (turn: PiTurn, guest: WireGuest) => PiOutcome | Promise<PiOutcome>

/** Answers with who spoke and what they said. */
const echo: GuestScript = ({ speaker, text }) => ({
  ok: true,
  text: `${speaker.id}: ${text}`,
  files: [],
})

/** A guest that talks the real wire over its worker's real socket, in this process: the outermost edge is false alone. */
export class WireGuest {
  readonly spec: WorkerSpec
  /** What it was handed. */
  readonly turns: PiTurn[] = []
  readonly #script: GuestScript
  readonly #gone = new AbortController()
  readonly #exit = Promise.withResolvers<WorkerExit>()
  #nonce = ''
  output = ''
  /** What the host answered to its hello. */
  welcome: PiWelcome | undefined
  /** It stays when its host is gone, as a hostile one would. */
  lingers = false

  constructor(spec: WorkerSpec, script: GuestScript) {
    this.spec = spec
    this.#script = script
  }

  get exited(): Promise<WorkerExit> {
    return this.#exit.promise
  }

  /** Fires when it ended. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  get alive(): boolean {
    return !this.#gone.signal.aborted
  }

  /** Says hello and takes turn after turn until it ends. */
  async run(): Promise<void> {
    try {
      await this.hello()
      while (this.alive) await this.#next()
    } catch {
      if (!this.lingers) this.end({ reason: 'exited', code: 4 })
    }
  }

  end(exit: WorkerExit): void {
    this.#gone.abort()
    this.#exit.resolve(exit)
  }

  async hello(): Promise<void> {
    const { status, json } = await this.call('POST', '/worker/hello', {
      body: { protocol: PROTOCOL_VERSION, mode: 'pi', posture: POSTURE },
    })
    if (status !== 200) throw new TypeError(`hello: ${status}`)
    this.welcome = json as PiWelcome
    this.#nonce = this.welcome.workerNonce
  }

  /** A message of this worker. */
  message(path: string, body: object): ReturnType<WireGuest['call']> {
    return this.call('POST', path, { headers: { [WORKER_NONCE_HEADER]: this.#nonce }, body })
  }

  /** A call that spends something of a turn. */
  spend(nonce: string, path: string, body: object): ReturnType<WireGuest['call']> {
    return this.call('POST', path, { headers: { [TURN_NONCE_HEADER]: nonce }, body })
  }

  call(
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: object } = {},
  ): Promise<{ status: number; json: unknown; text: string }> {
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const size = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent ?? '') }
    return new Promise((resolve, reject) => {
      const all = { host: BROKER_HOST, ...headers, ...(sent === undefined ? {} : size) }
      const socketPath = join(this.spec.runDir, SOCKET_NAME)
      const signal = this.#gone.signal
      const out = request(
        { socketPath, method, path, headers: all, agent: false, setDefaultHeaders: false, signal },
        (answer) => {
          const chunks: Buffer[] = []
          answer.on('data', (chunk: Buffer) => chunks.push(chunk))
          answer.on('error', reject)
          answer.on('end', () => {
            const text = Buffer.concat(chunks).toString()
            resolve({ status: answer.statusCode ?? 0, text, json: parsed(text) })
          })
        },
      )
      out.on('error', reject)
      out.end(sent)
    })
  }

  async #next(): Promise<void> {
    const headers = { [WORKER_NONCE_HEADER]: this.#nonce }
    const { status, json } = await this.call('GET', '/worker/next', { headers })
    if (status === 410 || status === 403) return this.end({ reason: 'exited', code: 0 })
    if (status !== 200) return
    const turn = json as PiTurn
    this.turns.push(turn)
    await this.message('/worker/ack', { turnId: turn.turnId })
    const result = await this.#script(turn, this)
    await this.message('/worker/result', { turnId: turn.turnId, result })
  }
}

/** Drives {@link WireGuest}s, and watches that no channel ever has two. */
export interface WireDriver extends Driver {
  /** Every guest that was started, in order. */
  readonly guests: WireGuest[]
  /** Breaches of what must never happen. */
  readonly breaches: string[]
  script: GuestScript
  /** Called before a guest starts; a rejection fails the start. */
  onStart?(spec: WorkerSpec): void | Promise<void>
  /** Called with a guest before it runs. */
  onGuest?(guest: WireGuest): void
  /** Called before a guest is removed; a rejection means that it is still there. */
  onRemove?(guest: WireGuest): void | Promise<void>
  /** What the guests are made from. */
  image: string
  alive(): WireGuest[]
}

export function wireDriver(script: GuestScript = echo): WireDriver {
  const guests: WireGuest[] = []
  const breaches: string[] = []
  const alive = () => guests.filter((guest) => guest.alive)
  const driver: WireDriver = {
    kind: 'process',
    isolation: 'none',
    guests,
    breaches,
    script,
    image: 'image-1',
    alive,
    check: async () => {},
    verify: () => [],
    identity: async () => driver.image,
    async start(spec, signal) {
      await driver.onStart?.(spec)
      if (signal?.aborted) throw new DriverError('aborted', 'Called off.', { cause: signal.reason })
      const others = alive().filter((one) => one.spec.channelHash === spec.channelHash)
      if (others.length > 0) breaches.push('two workers in one channel')
      const guest = new WireGuest(spec, (turn, self) => driver.script(turn, self))
      guests.push(guest)
      driver.onGuest?.(guest)
      void guest.run()
      return workerOf(guest, () => driver.onRemove?.(guest))
    },
    async sweep(live) {
      const left = alive().filter((guest) => !live.has(guest.spec.workerId))
      for (const guest of left) guest.end({ reason: 'killed', signal: 'SIGKILL' })
      return left.map((guest) => guest.spec.workerId)
    },
    async [Symbol.asyncDispose]() {
      for (const guest of alive()) guest.end({ reason: 'killed', signal: 'SIGKILL' })
    },
  }
  return driver
}

function workerOf(guest: WireGuest, onRemove: () => void | Promise<void> | undefined): Worker {
  return {
    id: randomBytes(4).toString('hex'),
    workerId: guest.spec.workerId,
    exited: guest.exited,
    output: () => guest.output,
    async remove() {
      await onRemove()
      guest.end({ reason: 'killed', signal: 'SIGKILL' })
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const none = '0'.repeat(16)
/** What every guest finds about itself. */
export const POSTURE = {
  runtime: 'test',
  uid: account.uid,
  gid: account.gid,
  groups: [],
  capabilities: { inheritable: none, permitted: none, effective: none, bounding: none, ambient: none },
  noNewPrivs: false,
  seccomp: 0,
  interfaces: ['lo'],
  routes: [],
  rootReadOnly: false,
  mounts: [],
  environment: [],
  namespaces: [],
}
