import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { openWorkerHost } from '../../testing/worker-host.ts'

const bundle = fileURLToPath(new URL('../../../dist/guest/sealed.js', import.meta.url))

test('the bundle is built ("pnpm run build:guest"), small, and imports only what it needs of the runtime', () => {
  expect(existsSync(bundle)).toBe(true)
  const text = readFileSync(bundle, 'utf8')
  expect(Buffer.byteLength(text)).toBeLessThan(60 * 1024)
  const imports = [...text.matchAll(/(?:from|import|require\()\s*["']([^"']+)["']/g)].map(([, name]) => name)
  expect([...new Set(imports)].sort()).toEqual(
    ['fs', 'path'].map((name) => expect.stringMatching(`^(node:)?${name}$`)),
  )
})

test('the bundle plays a turn by itself: no other file, no environment, stdin closed', async () => {
  using alone = tempDir()
  copyFileSync(bundle, `${alone.path}/sealed.mjs`)
  await using host = await openWorkerHost({})
  const args = [`${alone.path}/sealed.mjs`, '--socket', host.socketPath, '--workspace', host.workspace]
  const child = spawn(process.execPath, args, { env: {}, cwd: '/', stdio: ['ignore', 'inherit', 'inherit'] })
  expect(await once(child, 'close')).toEqual([0, null])
  expect(host.outcome()).toEqual({ ok: true, text: 'Hi.' })
})
