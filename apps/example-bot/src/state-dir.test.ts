import { chmodSync, chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { BotError } from './errors.ts'
import { defaultStatePath, impassable, openStateDir, ROOT_WORKER } from './state-dir.ts'

const uid = process.getuid?.() ?? 0
const mode = (path: string) => statSync(path).mode & 0o777

describe('state directory', () => {
  test('is created closed; for root passable and with a worker account of its own', () => {
    using root = tempDir()
    const path = join(root.path, 's')
    const state = openStateDir({ path })
    expect(mode(path)).toBe(uid === 0 ? 0o711 : 0o700)
    expect(mode(state.keysDir)).toBe(0o700)
    expect(mode(join(path, 'state'))).toBe(0o700)
    expect(state.worker).toEqual(uid === 0 ? ROOT_WORKER : undefined)
    expect(openStateDir({ path })).toEqual(state)
  })

  test('the default path is short and one an account', () => {
    expect(defaultStatePath(1000)).toBe('/tmp/sandbox-demo-1000')
  })

  test('a link is refused, also to a directory of our own', () => {
    using root = tempDir()
    mkdirSync(join(root.path, 'real'), { mode: 0o700 })
    symlinkSync(join(root.path, 'real'), join(root.path, 'link'))
    expect(() => openStateDir({ path: join(root.path, 'link') })).toThrow(/is a link: remove it/)
  })

  test('a directory that others may enter is refused, and the message mends it', () => {
    using root = tempDir()
    const path = join(root.path, 's')
    mkdirSync(path)
    chmodSync(path, 0o777)
    const want = uid === 0 ? '711' : '700'
    expect(() => openStateDir({ path })).toThrow(`is open to others (mode 0777): run: chmod ${want} ${path}.`)
  })

  test('open key directory inside is refused', () => {
    using root = tempDir()
    const path = join(root.path, 's')
    openStateDir({ path })
    chmodSync(join(path, 'keys'), 0o755)
    expect(() => openStateDir({ path })).toThrow(/keys is open to others/)
  })

  test.skipIf(uid !== 0)('a directory of another account is refused', () => {
    using root = tempDir()
    const path = join(root.path, 's')
    mkdirSync(path, { mode: 0o700 })
    chownSync(path, 4242, 4242)
    expect(() => openStateDir({ path })).toThrow('belongs to uid 4242, not to 0')
  })

  test('a file and a missing parent are refused with the code state_dir', () => {
    using root = tempDir()
    writeFileSync(join(root.path, 'f'), '')
    for (const path of [join(root.path, 'f'), join(root.path, 'no', 's')]) {
      try {
        openStateDir({ path })
        expect.unreachable()
      } catch (error) {
        expect(BotError.isInstance(error) && error.code).toBe('state_dir')
      }
    }
  })

  test('the first directory that another account cannot pass is named', () => {
    using root = tempDir()
    const inner = join(root.path, 'inner')
    mkdirSync(inner)
    chmodSync(inner, 0o711)
    expect(impassable(inner)).toBe(root.path)
    chmodSync(root.path, 0o711)
    expect(impassable(inner)).toBeUndefined()
  })
})
