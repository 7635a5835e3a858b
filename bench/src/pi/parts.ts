import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Door } from '../broker/load.ts'
import { endAll, type Part, startPart } from '../part.ts'

/** A Messages service, what stands between it and a worker, and workers: each in a process of its own. */
export interface PiParts extends AsyncDisposable {
  /** The Messages service itself. */
  readonly direct: Door
  /** A forwarder that checks nothing. */
  readonly bare: Door
  /** Our brokers. */
  readonly ours: Part
  /** The other end of our brokers. */
  readonly workers: Part
  /** Opens so many brokers; the paths of their sockets. */
  open(count: number): Promise<string[]>
}

/** Starts all of them. */
export async function startPiParts(): Promise<PiParts> {
  const dir = mkdtempSync(join(tmpdir(), 'bench-pi-'))
  const children: ChildProcess[] = []
  const file = (name: string) => new URL(name, import.meta.url)
  const { first } = await startPart(children, file('../broker/upstream.ts'))
  const url = `http://127.0.0.1:${(first as { port: number }).port}`
  const bareSocket = join(dir, 'bare.sock')
  await startPart(children, file('../broker/bare.ts'), { args: [bareSocket, url] })
  const ours = await startPart(children, file('./ours.ts'), { args: [url], flags: ['--expose-gc'] })
  const workers = await startPart(children, file('./workers.ts'))
  let opened = 0
  return {
    direct: { origin: url, path: '/v1/messages' },
    bare: { origin: 'http://broker', socketPath: bareSocket, path: '/v1/messages' },
    ours,
    workers,
    open: async (count) => {
      const paths = Array.from({ length: count }, (_, at) => join(dir, `o${opened + at}.sock`))
      opened += count
      await ours.ask({ open: paths })
      return paths
    },
    [Symbol.asyncDispose]: async () => {
      await endAll(children)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
