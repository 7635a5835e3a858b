import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { SOCKET_NAME } from '@sandbox/protocol'
import { tempDir } from '@sandbox/testing'
import type { WorkerSpec } from '../host/driver.ts'
import type { WorkerUser } from '../options.ts'

/** The account of workers in tests: this one, and a high number when this one is root. */
export function testUser(): WorkerUser {
  const [uid, gid] = [process.getuid?.() ?? 0, process.getgid?.() ?? 0]
  return uid === 0 ? { uid: 64_200, gid: 64_200 } : { uid, gid }
}

/** Directories for one worker, with a listener of its own and a program for the tiny guest. */
export interface TestPlace extends AsyncDisposable {
  readonly root: string
  readonly spec: WorkerSpec
  /** The next report of the guest; reports that nobody waits for are kept. */
  report(): Promise<unknown>
  /** Replaces the program of the tiny guest. */
  program(source: string): void
}

/** Makes directories, listens, and writes the program. */
export async function testPlace(program: string): Promise<TestPlace> {
  const dir = tempDir()
  const [runDir, workspaceDir] = [join(dir.path, 'run'), join(dir.path, 'work')]
  chmodSync(dir.path, 0o711)
  for (const path of [runDir, workspaceDir]) mkdirSync(path, { mode: 0o700 })
  const waiting: ((value: unknown) => void)[] = []
  const kept: unknown[] = []
  const server = await listen(join(runDir, SOCKET_NAME), (value) => {
    const next = waiting.shift()
    if (next) next(value)
    else kept.push(value)
  })
  const place: TestPlace = {
    root: dir.path,
    spec: {
      workerId: randomBytes(8).toString('hex'),
      channelHash: randomBytes(32).toString('hex'),
      epoch: 'test',
      runDir,
      workspaceDir,
    },
    report: async () => (kept.length > 0 ? kept.shift() : new Promise((resolve) => waiting.push(resolve))),
    program: (source) => writeFileSync(join(runDir, 'program.mjs'), source),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      dir[Symbol.dispose]()
    },
  }
  place.program(program)
  giveTo(testUser(), [runDir, workspaceDir, join(runDir, SOCKET_NAME), join(runDir, 'program.mjs')])
  return place
}

function giveTo({ uid, gid }: WorkerUser, paths: readonly string[]): void {
  if (process.getuid?.() === 0) for (const path of paths) chownSync(path, uid, gid)
}

async function listen(path: string, take: (value: unknown) => void): Promise<Server> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += String(chunk)
    })
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
      take(JSON.parse(body))
    })
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  chmodSync(path, 0o600)
  return server
}
