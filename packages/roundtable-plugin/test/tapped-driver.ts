import { chmodSync, chownSync, mkdirSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Driver, Worker, WorkerSpec } from '@sandbox/docker-worker'
import { SOCKET_NAME } from '@sandbox/protocol'
import { account } from './account.ts'

/** A driver whose workers talk through a tap: every byte on their sockets is kept. */
export interface TappedDriver extends Driver {
  /** What went into workers. */
  readonly inward: Buffer[]
  /** What came out of workers. */
  readonly outward: Buffer[]
  /** What workers wrote to their output streams. */
  readonly outputs: string[]
  /** The worker that was started last. */
  readonly last: Worker | undefined
}

/** Puts the tap's own socket directory in place of the run directory. */
export function tap(driver: Driver, directory: string): TappedDriver {
  const inward: Buffer[] = []
  const outward: Buffer[] = []
  const outputs: string[] = []
  let last: Worker | undefined
  return {
    inward,
    outward,
    outputs,
    get last() {
      return last
    },
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
    async start(spec, signal) {
      const runDir = join(directory, spec.workerId)
      const server = await listen(runDir, spec, inward, outward)
      const worker = await driver.start({ ...spec, runDir }, signal)
      last = worker
      return {
        id: worker.id,
        workerId: worker.workerId,
        exited: worker.exited,
        output: () => worker.output(),
        async remove() {
          await worker.remove()
          outputs.push(worker.output())
          server.close()
          rmSync(runDir, { recursive: true, force: true })
        },
      }
    },
  }
}

async function listen(
  runDir: string,
  spec: WorkerSpec,
  inward: Buffer[],
  outward: Buffer[],
): Promise<Server> {
  mkdirSync(runDir, { mode: 0o700 })
  const path = join(runDir, SOCKET_NAME)
  const server = createServer((worker) => {
    const broker = connect(join(spec.runDir, SOCKET_NAME))
    pump(broker, worker, inward)
    pump(worker, broker, outward)
  })
  await new Promise<void>((done) => server.listen(path, done))
  chmodSync(path, 0o600)
  if (process.geteuid?.() === 0) for (const each of [runDir, path]) chownSync(each, account.uid, account.gid)
  return server
}

function pump(from: Socket, to: Socket, kept: Buffer[]): void {
  from.on('data', (chunk: Buffer) => kept.push(chunk))
  from.on('error', () => to.destroy())
  from.pipe(to)
}
