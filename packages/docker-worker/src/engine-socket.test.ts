import { execFileSync } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sourceFlags, tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'

/** As a host does it: the driver is made, which looks at the engine's socket, and its client is loaded later. */
const PROGRAM = `
import { createDockerDriver } from './src/index.ts'
createDockerDriver({ image: 'i:1', installId: 'install-1', user: { uid: 1000, gid: 1000 }, engineSocket: process.argv[1] })
const { default: Dockerode } = await import('dockerode')
console.log(typeof Dockerode)
`

test.skipIf(process.versions.bun !== undefined)(
  'a socket that was looked at spoils no later import',
  async () => {
    using dir = tempDir()
    const engineSocket = join(dir.path, 'engine.sock')
    const server = createServer()
    await new Promise<void>((done) => server.listen(engineSocket, done))
    try {
      const cwd = fileURLToPath(new URL('..', import.meta.url))
      const args = [...sourceFlags, '--input-type=module', '--eval', PROGRAM, engineSocket]
      const told = execFileSync(process.execPath, args, {
        cwd,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      })
      expect(told.trim()).toBe('function')
    } finally {
      server.close()
    }
  },
)
