import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { account, ownDir } from '../../test/account.ts'
import { give, isWithin, privateRoot, workerAccount } from './private-directory.ts'

const root = { uid: 0, gid: 0 }
const service = { uid: 1000, gid: 1001 }

test('RL-05 a host that is not root lends its workers its own account, and no other', () => {
  expect(workerAccount(undefined, service)).toEqual(service)
  expect(workerAccount({ uid: 1000, gid: 1001 }, service)).toEqual(service)
  expect(() => workerAccount({ uid: 1001 }, service)).toThrow(/must be those of the host \(1000:1001\)/)
  expect(() => workerAccount({ gid: 1000 }, service)).toThrow(/must be those of the host/)
})

test('[worker:never-root] decision 25: a root host must name a uid and a gid that are not root', () => {
  expect(workerAccount({ uid: 64200, gid: 64201 }, root)).toEqual({ uid: 64200, gid: 64201 })
  for (const named of [
    undefined,
    { uid: 64200 },
    { gid: 1 },
    { uid: 0, gid: 1 },
    { uid: 1, gid: 0 },
    { uid: 1.5, gid: 1 },
  ]) {
    expect(() => workerAccount(named, root)).toThrow(/runs as root.*name a uid and a gid/s)
  }
})

test('RL-04 a missing root is made, private and owned by the workers', () => {
  using dir = ownDir()
  const path = join(dir.path, 'a', 'b')
  expect(privateRoot('runRoot', path, account)).toBe(path)
  const stat = statSync(path)
  expect([stat.mode & 0o777, stat.uid]).toEqual([0o700, account.uid])
})

test.each([
  ['relative/path', /is not absolute/],
  ['/', /is the root of the file system/],
  ['/tmp/..', /is the root of the file system/],
])('RL-04 %s is refused', (path, message) => {
  expect(() => privateRoot('runRoot', path, account)).toThrow(message)
})

test('RL-04 a root that others can read, that is no directory or another account owns is refused', () => {
  using dir = ownDir()
  const open = join(dir.path, 'open')
  privateRoot('runRoot', open, account)
  chmodSync(open, 0o750)
  expect(() => privateRoot('runRoot', open, account)).toThrow(
    `is open to other accounts (mode 750). Run: chmod 700 ${open}`,
  )
  const file = join(dir.path, 'file')
  writeFileSync(file, '')
  expect(() => privateRoot('runRoot', file, account)).toThrow(/runRoot .*file/)
  const other = { uid: account.uid + 1, gid: account.gid }
  chmodSync(open, 0o700)
  expect(() => privateRoot('runRoot', open, other)).toThrow(/belongs to uid \d+, not to \d+. Run: chown/)
})

test.runIf(process.geteuid?.() === 0)(
  'decision 25 a root host gives away no more than the directory itself: a link in its place is not followed',
  () => {
    using dir = ownDir()
    const [others, link, own] = [join(dir.path, 'others'), join(dir.path, 'link'), join(dir.path, 'own')]
    for (const path of [others, own]) mkdirSync(path, { mode: 0o755 })
    symlinkSync(others, link)
    expect(() => give(link, account)).toThrow(/ENOTDIR|ELOOP/)
    give(own, account)
    expect([statSync(others), statSync(own)]).toMatchObject([{ uid: 0, gid: 0 }, account])
    expect([statSync(others).mode & 0o777, statSync(own).mode & 0o777]).toEqual([0o755, 0o700])
  },
)

test('RL-04 links are resolved before anything is decided', () => {
  using dir = ownDir()
  const real = join(dir.path, 'real')
  privateRoot('runRoot', real, account)
  symlinkSync(real, join(dir.path, 'link'))
  expect(privateRoot('runRoot', join(dir.path, 'link'), account)).toBe(real)
  mkdirSync(join(dir.path, 'open'), { mode: 0o755 })
  symlinkSync(join(dir.path, 'open'), join(dir.path, 'trap'))
  expect(() => privateRoot('runRoot', join(dir.path, 'trap'), account)).toThrow()
})

test('isWithin knows a sibling with the same beginning', () => {
  expect([isWithin('/a/b', '/a'), isWithin('/a', '/a'), isWithin('/ab', '/a'), isWithin('/x', '/')]).toEqual([
    true,
    true,
    false,
    true,
  ])
})

test.each([undefined, null, 3, ''])('RL-04 %s is no path, and the option is named', (path) => {
  expect(() => privateRoot('runRoot', path as never, account)).toThrow(
    /^runRoot: must be the absolute path of a directory, and is (undefined|null|number|"")/,
  )
})

test.each(['/', '/etc', '/srv', '/tmp', '/usr/local', '/var/lib'])(
  'RL-04 nobody is told to take %s over',
  (path) => {
    expect(() => privateRoot('runRoot', path, { uid: 64_201, gid: 64_201 })).toThrow(
      /choose another path|Give it its own directory/,
    )
  },
)

test('RL-04 nobody is told to take over what another account keeps its files in', () => {
  using dir = ownDir()
  const other = { uid: account.uid + 1, gid: account.gid }
  const path = join(dir.path, 'full')
  mkdirSync(path, { mode: 0o700 })
  writeFileSync(join(path, 'file'), '')
  expect(() => privateRoot('runRoot', path, other)).toThrow(/It is not empty: choose another path/)
})

test.each(['/proc/x', '/proc/self/x', '/sys/x', '/dev/x', '/dev'])(
  'RL-04 %s is refused before anything is made',
  (path) => {
    expect(() => privateRoot('runRoot', path, account)).toThrow(/belongs to the kernel/)
  },
)

test('RL-04 what stands in the way of a root is named in words', () => {
  using dir = ownDir()
  writeFileSync(join(dir.path, 'file'), '')
  symlinkSync('/nowhere/at/all', join(dir.path, 'dangling'))
  symlinkSync('/proc', join(dir.path, 'kernel'))
  for (const [path, words] of [
    ['file', /is not a directory. Remove it, or name another/],
    ['file/run', /leads through a file. Remove that file/],
    ['dangling', /leads through a link that goes nowhere/],
    ['dangling/run', /leads through a link that goes nowhere/],
    ['kernel/run', /belongs to the kernel/],
  ] as const) {
    expect(() => privateRoot('runRoot', join(dir.path, path), account)).toThrow(words)
  }
  expect(readdirSync(dir.path).sort()).toEqual(['dangling', 'file', 'kernel'])
})

test('RL-04 workers can pass the directories that are made above their root', () => {
  using dir = ownDir()
  privateRoot('runRoot', join(dir.path, 'a', 'b', 'run'), account)
  const modes = ['a', 'a/b', 'a/b/run'].map((path) => statSync(join(dir.path, path)).mode & 0o777)
  const above = process.geteuid?.() === 0 ? 0o711 : 0o700
  expect(modes).toEqual([above, above, 0o700])
})
