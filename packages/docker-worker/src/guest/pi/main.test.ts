import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { openPiHost, type PiHost } from '../../testing/pi-host.ts'

const bundle = fileURLToPath(new URL('../../../dist/guest/pi-agent.cjs', import.meta.url))
const children: ChildProcess[] = []

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Starts the built bundle, as the process driver does. */
function startWorker(host: PiHost, content = '/nowhere'): ChildProcess {
  expect(existsSync(bundle), 'built by "pnpm run build:guest"').toBe(true)
  const args = [bundle, '--socket', host.socketPath, '--workspace', host.workspace, '--content', content]
  const child = spawn(process.execPath, args, { env: {}, cwd: '/', stdio: ['ignore', 'inherit', 'inherit'] })
  children.push(child)
  return child
}

test('a text turn', async () => {
  await using host = await openPiHost({ model: () => ['Good morning.'] })
  startWorker(host)
  expect(await host.hello()).toMatchObject({ mode: 'pi', protocol: 1 })
  expect(await host.play()).toEqual({ ok: true, text: 'Good morning.', files: [] })
}, 20_000)
