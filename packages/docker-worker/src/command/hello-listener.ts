import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, mkdtempSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  isWorkerHello,
  limits,
  PROTOCOL_VERSION,
  SOCKET_NAME,
  WORKER_ROUTES,
  type WorkerHello,
} from '@sandbox/protocol'
import { DriverError } from '../errors.ts'
import { removeTree } from '../host/remove-tree.ts'
import type { WorkerUser } from '../options.ts'
import { type Deferred, deferred } from './deferred.ts'

/** Directories and a listener for one worker that only says hello. */
export interface HelloListener extends AsyncDisposable {
  readonly runDir: string
  readonly workspaceDir: string
  /** The hello. Rejects with `start_failed` when what came was none. */
  readonly hello: Promise<WorkerHello>
}

/** Listens for one hello in a new directory of this machine. Every later call is told that there is no turn. */
export async function listenForHello(user: WorkerUser): Promise<HelloListener> {
  const root = mkdtempSync(join(tmpdir(), 'sbx-doctor-'))
  const [runDir, workspaceDir] = [join(root, 'run'), join(root, 'work')]
  for (const path of [runDir, workspaceDir]) mkdirSync(path, { mode: 0o700 })
  const found = deferred<WorkerHello>()
  found.promise.catch(() => {})
  const server = createServer((request, response) => {
    void answer(request, response, found)
  })
  const socket = join(runDir, SOCKET_NAME)
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(socket, resolve))
  chmodSync(socket, 0o600)
  if (process.geteuid?.() === 0)
    for (const path of [runDir, workspaceDir, socket]) chownSync(path, user.uid, user.gid)
  return {
    runDir,
    workspaceDir,
    hello: found.promise,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      removeTree(root)
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  found: Deferred<WorkerHello>,
): Promise<void> {
  const send = (status: number, body: unknown) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  const over = { error: { code: 'turn_over', message: 'There is no turn.' } }
  if (request.url !== WORKER_ROUTES.hello) {
    request.resume()
    send(410, over)
    return
  }
  const hello = await readJson(request).catch(() => undefined)
  if (!isWorkerHello(hello)) {
    found.reject(new DriverError('start_failed', 'The worker said something else than hello.'))
    send(410, over)
    return
  }
  found.resolve(hello)
  send(200, { protocol: PROTOCOL_VERSION, workerNonce: randomBytes(16).toString('hex') })
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > limits.WORKER_MESSAGE_BYTES) return undefined
    chunks.push(chunk)
  }
  return JSON.parse(Buffer.concat(chunks).toString('utf8'))
}
