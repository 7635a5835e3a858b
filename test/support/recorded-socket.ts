import { chmodSync, chownSync, renameSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'

/** A worker’s socket with somebody who writes down what goes in. */
export interface RecordedSocket extends AsyncDisposable {
  /** Every byte that was sent towards the worker, in the order of its arrival. */
  bytes(): Buffer
}

/**
 * Takes the place of a broker’s socket: the broker’s own is moved to `away`, and whatever passes between the two is
 * written down. The worker sees no difference.
 */
export async function recordSocket(
  path: string,
  away: string,
  owner: { uid: number; gid: number },
): Promise<RecordedSocket> {
  const behind = join(away, `${Math.random().toString(36).slice(2)}.sock`)
  renameSync(path, behind)
  const chunks: Buffer[] = []
  const open = new Set<Socket>()
  const server = createServer((worker) => {
    const broker = connect(behind)
    broker.on('data', (chunk: Buffer) => chunks.push(chunk))
    for (const [one, other] of [
      [worker, broker],
      [broker, worker],
    ] as const) {
      open.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
    }
    worker.pipe(broker).pipe(worker)
  })
  await new Promise<void>((done, failed) => server.once('error', failed).listen(path, done))
  chmodSync(path, 0o600)
  if (process.geteuid?.() === 0) chownSync(path, owner.uid, owner.gid)
  return {
    bytes: () => Buffer.concat(chunks),
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy()
      await new Promise<void>((done) => server.close(() => done()))
    },
  }
}
