import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Door } from '../broker/load.ts'
import { endAll, type Part, startPart } from '../part.ts'

/** A Messages service, and what may stand between it and a worker: each in a process of its own. */
export interface StreamParts extends AsyncDisposable {
  /** The service itself; a forwarder that checks nothing; our broker. */
  readonly doors: Readonly<Record<'direct' | 'bare' | 'ours', Door>>
}

/** Starts all of them. */
export async function startStreamParts(): Promise<StreamParts> {
  const place = new Place()
  const { first } = await place.start('../broker/upstream.ts', [])
  const url = `http://127.0.0.1:${(first as { port: number }).port}`
  const [bare, ours] = [join(place.dir, 'bare.sock'), join(place.dir, 'ours.sock')]
  await place.start('../broker/bare.ts', [bare, url])
  const { nonce } = (await place.start('./ours.ts', [ours, url])).first as { nonce: string }
  const [origin, path] = ['http://broker', '/v1/messages']
  return {
    doors: {
      direct: { origin: url, path },
      bare: { origin, path, socketPath: bare },
      ours: { origin, path, socketPath: ours, headers: { 'x-sandbox-turn': nonce } },
    },
    [Symbol.asyncDispose]: () => place.end(),
  }
}

/** A host and its workers, each in one process. */
export interface IdleParts extends AsyncDisposable {
  readonly host: Part
  readonly workers: Part
}

/** Starts both. */
export async function startIdleParts(): Promise<IdleParts> {
  const place = new Place()
  return {
    host: await place.start('./host.ts', [join(place.dir, 'p')], ['--expose-gc']),
    workers: await place.start('./workers.ts', []),
    [Symbol.asyncDispose]: () => place.end(),
  }
}

class Place {
  readonly dir = mkdtempSync(join(tmpdir(), 'bench-pi-'))
  readonly #children: ChildProcess[] = []

  start(file: string, args: readonly string[], flags: readonly string[] = []) {
    return startPart(this.#children, new URL(file, import.meta.url), { args, flags })
  }

  async end(): Promise<void> {
    await endAll(this.#children)
    rmSync(this.dir, { recursive: true, force: true })
  }
}
