import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { dockerGate, sourceFlags, tempDir } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { connectEngine } from './host/container/docker-client.ts'
import { removeContainer } from './host/container/reconcile.ts'
import { IMAGE_FILES } from './host/container/sealed-spec.ts'
import { ENGINE, tinyImage } from './testing/tiny-image.ts'

const CLI = fileURLToPath(new URL('./cli.ts', import.meta.url))

describe.skipIf(!dockerGate())('the program is left alone while it runs something', () => {
  let image: string
  beforeAll(async () => {
    image = await tinyImage()
  })

  test.each<[string, (child: ChildProcess) => void]>([
    ['nobody reads its output any more, as with "| head -1"', (child) => child.stdout?.destroy()],
    ['nobody reads its problems any more', (child) => child.stderr?.destroy()],
    ['its terminal is closed', (child) => child.kill('SIGHUP')],
  ])(
    'W-60 %s: the container is removed first',
    async (_case, leave) => {
      using runDir = tempDir()
      using tmp = tempDir()
      const install = `test-cli-${randomBytes(4).toString('hex')}`
      const talks = 'setInterval(() => { console.log("y"); console.error("y") }, 50)'
      const options = ['--socket', ENGINE, '--image', image, '--run-dir', runDir.path, '--install', install]
      const child = spawn(
        process.execPath,
        [...sourceFlags, CLI, 'run', ...options, '--', IMAGE_FILES.runtime, '-e', talks],
        { env: { TMPDIR: tmp.path }, stdio: ['ignore', 'pipe', 'pipe'] },
      )
      const ended = once(child, 'exit')
      await once(child.stdout, 'data')
      leave(child)
      const end = await ended
      const engine = await connectEngine(ENGINE)
      const left = await engine.list(install)
      await Promise.all(left.map(({ id }) => removeContainer(engine, id)))
      expect(left).toEqual([])
      expect(end).toEqual([130, null])
    },
    60_000,
  )
})
