import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { createProcessDriver } from '../src/host/process-driver.ts'
import { openPiHost } from '../src/testing/pi-host.ts'
import { testUser } from '../src/testing/worker-bench.ts'

test('decision 26: the process driver starts the real Pi agent too, without an engine', async () => {
  using state = tempDir()
  chmodSync(state.path, 0o711)
  const runRoot = join(state.path, 'run')
  mkdirSync(runRoot, { mode: 0o711 })
  await using driver = createProcessDriver({ guest: 'pi', runRoot, user: testUser() })
  await driver.check()
  await using host = await openPiHost({ model: () => ['Ahoy.'] })
  const worker = await driver.start({
    workerId: randomBytes(8).toString('hex'),
    channelHash: 'c'.repeat(64),
    epoch: 'test',
    runDir: host.runDir,
    workspaceDir: host.workspace,
  })
  expect(await host.hello()).toMatchObject({ mode: 'pi' })
  expect(await host.play()).toEqual({ ok: true, text: 'Ahoy.', files: [] })
  await worker.remove()
  expect(await worker.exited).toMatchObject({ reason: 'killed' })
})
