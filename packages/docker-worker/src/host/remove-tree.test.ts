import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { removeTree, removeWorkspace } from './remove-tree.ts'

test.each([
  ['removeTree', removeTree],
  ['removeWorkspace', removeWorkspace],
])(
  'W-66 %s: what a program left is removed: closed, nested beyond paths, with links that are not followed',
  async (_, remove) => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'outside'), 'stays')
    mkdirSync(join(dir.path, 'other'), { mode: 0o755 })
    const tree = mkdtempSync(join(dir.path, 'tree-'))
    mkdirSync(join(tree, 'a/closed/inner'), { recursive: true })
    writeFileSync(join(tree, 'a/closed/inner/file'), '')
    writeFileSync(join(tree, 'a/file'), '')
    symlinkSync('../../outside', join(tree, 'a/link'))
    symlinkSync(join(dir.path, 'other'), join(tree, 'directory-link'))
    symlinkSync('nowhere', join(tree, 'dangling'))
    execFileSync('mkfifo', [join(tree, 'fifo')])
    // Names that are no text.
    execFileSync('sh', ['-c', "b=$(printf '\\377'); mkdir -p $b/$b.d/in && : > $b/$b && : > $b.x"], {
      cwd: tree,
    })
    const nest =
      'n=$(printf %0240d 0); i=0; while [ $i -lt 40 ]; do mkdir $n && cd -P $n || exit 1; i=$((i+1)); done; : > $n'
    execFileSync('sh', ['-c', nest], { cwd: tree })
    for (const path of ['a/closed/inner', 'a/closed', 'a', '.']) chmodSync(join(tree, path), 0)
    await remove(tree)
    expect(existsSync(tree)).toBe(false)
    expect(readFileSync(join(dir.path, 'outside'), 'utf8')).toBe('stays')
    expect(existsSync(join(dir.path, 'other'))).toBe(true)
  },
)

test.each([
  ['removeTree', removeTree],
  ['removeWorkspace', removeWorkspace],
])(
  '[erase:nothing-left] %s: a link in place of the directory itself is removed, and nothing that it leads to',
  async (_, remove) => {
    using dir = tempDir()
    const [elsewhere, tree] = [join(dir.path, 'elsewhere'), join(dir.path, 'tree')]
    mkdirSync(join(elsewhere, 'inner'), { recursive: true })
    writeFileSync(join(elsewhere, 'file'), 'stays')
    chmodSync(elsewhere, 0o755)
    for (const target of [elsewhere, join(elsewhere, 'file'), 'nowhere']) {
      symlinkSync(target, tree)
      await remove(tree)
      expect(lstatSync(tree, { throwIfNoEntry: false })).toBe(undefined)
    }
    expect([readdirSync(elsewhere), statSync(elsewhere).mode & 0o777]).toEqual([['file', 'inner'], 0o755])
    expect(readFileSync(join(elsewhere, 'file'), 'utf8')).toBe('stays')
  },
)

test.skipIf(process.platform !== 'linux')(
  '[erase:nothing-left] a link that takes the place of a directory while it is removed leads nowhere',
  async () => {
    using dir = tempDir()
    const [tree, moved, elsewhere] = ['tree', 'moved', 'elsewhere'].map((name) => join(dir.path, name)) as [
      string,
      string,
      string,
    ]
    mkdirSync(tree)
    mkdirSync(elsewhere)
    for (let n = 0; n < 1_000; n += 1)
      for (const place of [tree, elsewhere]) writeFileSync(join(place, `${n}`), '')
    const removing = removeWorkspace(tree)
    renameSync(tree, moved)
    symlinkSync(elsewhere, tree)
    await expect(removing).rejects.toMatchObject({ code: 'ENOTDIR' })
    expect([readdirSync(elsewhere).length, readdirSync(moved).length]).toEqual([1_000, 0])
    // Tried again, it finds the link.
    await removeWorkspace(tree)
    expect(readdirSync(elsewhere)).toHaveLength(1_000)
  },
)

test('removeWorkspace lets others work meanwhile, and does not mind a directory that is gone', async () => {
  using dir = tempDir()
  const tree = join(dir.path, 'tree')
  mkdirSync(tree)
  for (let n = 0; n < 1_000; n += 1) writeFileSync(join(tree, `${n}`), '')
  const removing = removeWorkspace(tree)
  await new Promise((done) => setImmediate(done))
  expect(existsSync(tree)).toBe(true)
  await removing
  expect(existsSync(tree)).toBe(false)
  await removeWorkspace(tree)
})
