import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { readElf } from './elf.ts'
import { findRuntime } from './runtime-files.ts'

describe('findRuntime', () => {
  test('decision 22: finds the runtime that runs now, its libraries and its loader', async () => {
    const runtime = await findRuntime(process.execPath)
    const { bun, node } = process.versions
    expect(runtime).toMatchObject({ kind: bun ? 'bun' : 'node', version: bun ?? node })
    const { loader } = await readElf(process.execPath)
    const targets = runtime.libraries.map(({ target }) => target)
    expect(targets).toContain(loader)
    expect(targets.some((target) => /libc\.so|musl/.test(target))).toBe(true)
    expect(targets).toEqual([...targets].sort())
    for (const { source } of runtime.libraries)
      expect((await readElf(source)).architecture).toBe(runtime.architecture)
  })

  const bad = (path: string) =>
    expect(findRuntime(path)).rejects.toMatchObject({ code: 'runtime_unsuitable' })

  test('decision 22: anything but a Linux program is refused', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'runtime')
    const contents = {
      script: Buffer.from('#!/bin/sh\nexec node "$@"\n'),
      'Mach-O': Buffer.concat([Buffer.from([0xcf, 0xfa, 0xed, 0xfe]), Buffer.alloc(60)]),
      'PE of Windows': Buffer.concat([Buffer.from('MZ'), Buffer.alloc(62)]),
      empty: Buffer.alloc(0),
      cut: readFileSync('/bin/true').subarray(0, 20),
      'of FreeBSD': changed(readFileSync('/bin/true'), 7, 9),
      '32 bit': changed(readFileSync('/bin/true'), 4, 1),
      'of another processor': changed(readFileSync('/bin/true'), 18, 243),
    }
    for (const content of Object.values(contents)) {
      writeFileSync(path, content, { mode: 0o755 })
      await bad(path)
    }
    await bad(join(dir.path, 'nothing'))
    await bad(dir.path)
  })

  test('a Linux program that is neither Node nor Bun is refused', async () => {
    await bad('/bin/ls')
    await bad('/bin/true')
  })
})

function changed(bytes: Buffer, at: number, value: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = value
  return copy
}
