import { chmodSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type ChannelKey, SandboxRuntime, type SandboxRuntimeOptions } from '@sandbox/roundtable-plugin'

/** One turn's times, from the moment in which the host handed it over. */
export interface Sample {
  /** Until the first model call reached the broker. */
  readonly handoverMs: number
  /** Until the answer was at the host. */
  readonly replyMs: number
  /** A worker was waiting for it. */
  readonly warm: boolean
}

/** What every lane shares. */
export interface LaneParts {
  readonly engineSocket: string
  readonly image: string
  readonly modelUrl: string
}

/** The account of workers: this one, or a high number when this one is root. */
export const account =
  process.getuid?.() === 0
    ? { uid: 64_200, gid: 64_200 }
    : { uid: process.getuid?.() ?? -1, gid: process.getgid?.() ?? -1 }

interface Times {
  readonly began: number
  handoverMs?: number
  replyMs?: number
  warm?: boolean
}

/** One way to start a worker, with everything else the same. */
export class Lane {
  readonly name: string
  readonly runtime: SandboxRuntime
  readonly #running = new Map<string, Times>()

  constructor(
    name: string,
    state: string,
    parts: LaneParts,
    options: Pick<SandboxRuntimeOptions, 'driver' | 'warm'>,
  ) {
    this.name = name
    const home = join(state, name)
    // The worker's account must be able to pass through it.
    mkdirSync(home)
    chmodSync(home, 0o711)
    this.runtime = new SandboxRuntime({
      ...(options.driver === 'process' ? {} : { image: parts.image, engineSocket: parts.engineSocket }),
      runRoot: join(home, 'r'),
      workspaceRoot: join(home, 'w'),
      model: 'bench',
      modelUrl: parts.modelUrl,
      allowHttp: true,
      apiKey: ({ channel }) => {
        this.#note(channel, (times) => {
          times.handoverMs ??= performance.now() - times.began
        })
        return 'sk-bench-0123456789abcdef'
      },
      onTurn: ({ state: entered, channel, warm }) => {
        this.#note(channel, (times) => {
          if (warm !== undefined) times.warm = warm
          if (entered === 'settling') times.replyMs = performance.now() - times.began
        })
      },
      ...(process.getuid?.() === 0 ? account : {}),
      ...options,
    })
  }

  /** Runs one turn in a channel. */
  async turn(channel: ChannelKey = 'bench:one'): Promise<Sample> {
    const times: Times = { began: performance.now() }
    this.#running.set(channel, times)
    const reply = await this.runtime.runTurn(channel, { id: 'u1', name: 'Ann' }, 'hello')
    const { handoverMs, replyMs, warm = false } = times
    if (!reply.ok || handoverMs === undefined || replyMs === undefined) {
      throw new TypeError(`bench: a turn by ${this.name} failed: ${JSON.stringify(reply)}`)
    }
    return { handoverMs, replyMs, warm }
  }

  #note(channel: string, change: (times: Times) => void): void {
    const times = this.#running.get(channel)
    if (times) change(times)
  }
}

/** How long a sample waits for a quiet machine. */
const QUIET_WAIT_MS = 1_500
const LOOK_MS = 50
const QUIET_BUSY = 0.25

/**
 * Waits until the cores were idle for a moment, so that what else runs on the machine spoils fewer samples. On one that
 * is never quiet, it goes on after a while.
 */
export async function quiet(): Promise<void> {
  const end = performance.now() + QUIET_WAIT_MS
  for (let before = ticks(); performance.now() < end; ) {
    await pause(LOOK_MS)
    const now = ticks()
    if (now.busy - before.busy <= QUIET_BUSY * (now.all - before.all)) return
    before = now
  }
}

function ticks(): { busy: number; all: number } {
  let [busy, all] = [0, 0]
  for (const { times } of cpus()) {
    const sum = Object.values(times).reduce((a, b) => a + b, 0)
    all += sum
    busy += sum - times.idle
  }
  return { busy, all }
}

/** A model service that answers at once. */
export async function standInModel(): Promise<{ url: string } & AsyncDisposable> {
  const message = { role: 'assistant', content: 'hello' }
  const body = JSON.stringify({ choices: [{ index: 0, finish_reason: 'stop', message }] })
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(body))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
