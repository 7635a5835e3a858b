import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { type TarEntry, tarBytes, tarStream } from './tar.ts'

async function written(entries: readonly TarEntry[]): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of tarStream(entries)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('another tar reads what we write, byte for byte, with its modes', async () => {
  using dir = tempDir()
  const file = join(dir.path, 'source')
  writeFileSync(file, Buffer.alloc(3_000_001, 7))
  const long = `${'directory/'.repeat(11)}${'n'.repeat(80)}`
  const entries: TarEntry[] = [
    { path: 'tmp/', mode: 0o1777 },
    { path: 'empty', mode: 0o644, content: new Uint8Array() },
    { path: 'block', mode: 0o755, content: Buffer.alloc(512, 'b') },
    { path: long, mode: 0o600, content: Buffer.from('long') },
    { path: 'large', mode: 0o644, content: { file, size: 3_000_001 } },
  ]
  const bytes = await written(entries)
  expect(bytes.length).toBe(tarBytes(entries))
  const out = join(dir.path, 'out')
  mkdirSync(out)
  execFileSync('tar', ['-xpf', '-', '-C', out], { input: bytes })
  expect(statSync(join(out, 'tmp')).mode & 0o7777).toBe(0o1777)
  expect(statSync(join(out, 'block')).mode & 0o7777).toBe(0o755)
  expect(readFileSync(join(out, 'empty')).length).toBe(0)
  expect(readFileSync(join(out, 'block'), 'utf8')).toBe('b'.repeat(512))
  expect(readFileSync(join(out, long), 'utf8')).toBe('long')
  expect(readFileSync(join(out, 'large')).equals(readFileSync(file))).toBe(true)
})

test('decision 22: equal entries give equal bytes, whenever and by whomever', async () => {
  const entries: TarEntry[] = [{ path: 'a', mode: 0o644, content: Buffer.from('a') }]
  const first = await written(entries)
  expect((await written(entries)).equals(first)).toBe(true)
  expect(first.subarray(108, 124).toString()).toBe('0000000\u00000000000\u0000')
  expect(first.subarray(136, 148).toString()).toBe('00000000000\u0000')
})

test('a file that changed is an error, not a broken archive', async () => {
  using dir = tempDir()
  const file = join(dir.path, 'source')
  writeFileSync(file, 'longer than said')
  const entries: TarEntry[] = [{ path: 'a', mode: 0o644, content: { file, size: 3 } }]
  await expect(written(entries)).rejects.toMatchObject({ code: 'runtime_unsuitable' })
})

test('a path that no archive can hold is an error', async () => {
  const entries: TarEntry[] = [{ path: 'n'.repeat(300), mode: 0o644, content: new Uint8Array() }]
  await expect(written(entries)).rejects.toMatchObject({ code: 'runtime_unsuitable' })
})
