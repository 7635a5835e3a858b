import { createServer } from 'node:http'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'

/** An answer of the scripted engine. */
export interface EngineAnswer {
  readonly status: number
  readonly body?: unknown
}

/** An engine on a real Unix socket that says what a test wants, for what a real one cannot be made to do. */
export interface ScriptedEngine extends AsyncDisposable {
  readonly path: string
  /** `METHOD path` of every call so far, without query and version. */
  readonly calls: readonly string[]
}

/** Answers each call with `answer(call)`, where `call` is `METHOD path`; `undefined` means 404. `/version` has a default. */
export async function scriptedEngine(
  answer: (call: string) => EngineAnswer | undefined,
): Promise<ScriptedEngine> {
  const dir = tempDir()
  const path = join(dir.path, 'engine.sock')
  const calls: string[] = []
  const server = createServer((request, response) => {
    const route = (request.url ?? '').replace(/\?.*/, '').replace(/^\/v[\d.]+/, '')
    const call = `${request.method} ${route}`
    calls.push(call)
    request.resume()
    request.on('end', () => {
      const version = { status: 200, body: { ApiVersion: '1.41', MinAPIVersion: '1.12' } }
      const { status, body } = answer(call) ??
        (call === 'GET /version' ? version : undefined) ?? { status: 404, body: { message: 'none' } }
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(status === 204 ? undefined : JSON.stringify(body ?? { message: 'scripted' }))
    })
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return {
    path,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      dir[Symbol.dispose]()
    },
  }
}
