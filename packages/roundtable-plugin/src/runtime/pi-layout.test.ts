import { execFileSync } from 'node:child_process'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { account, ownDir, userOptions } from '../../test/account.ts'
import { SandboxPluginError } from '../errors.ts'
import { openPiLayout, type PiLayout } from './pi-layout.ts'

/** A layout in a directory of its own, and a place outside that no guest may reach. */
function opened() {
  const dir = ownDir()
  const partyDir = join(dir.path, 'p')
  const layout = openPiLayout({ partyDir, user: userOptions })
  const outside = join(dir.path, 'outside')
  mkdirSync(outside, { mode: 0o777 })
  return {
    layout,
    partyDir,
    outside,
    [Symbol.dispose]() {
      layout.close()
      dir[Symbol.dispose]()
    },
  }
}

const codeOf = (work: () => unknown) => {
  try {
    work()
    return undefined
  } catch (error) {
    return SandboxPluginError.isInstance(error) ? error.code : error
  }
}

test('PR-01 PR-03 decision 25: a channel has its directories, private and owned by the workers', async () => {
  using it = opened()
  const { layout, partyDir } = it
  const place = await layout.prepare('discord:12/..3')
  const root = join(partyDir, 'discord_12___3')
  expect(place.workspaceDir).toBe(join(root, 'workspace'))
  expect(readdirSync(root).toSorted()).toEqual(['.channel-key', 'run', 'workspace'])
  expect(readdirSync(place.workspaceDir).toSorted()).toEqual(['attachments', 'outbox', 'sessions'])
  for (const path of [
    partyDir,
    root,
    place.runDir,
    place.workspaceDir,
    layout.sessionsDir('discord:12/..3'),
  ]) {
    expect([path, statSync(path).mode & 0o777, statSync(path).uid]).toEqual([path, 0o700, account.uid])
  }
  expect(lstatSync(join(root, '.channel-key')).mode & 0o777).toBe(0o600)
  await place.dispose()
  await place.dispose()
  expect(readdirSync(join(root, 'run'))).toEqual([])
})

test('PR-01 a party directory that is relative, the root, open to others or in use is refused', () => {
  using it = opened()
  using dir = ownDir()
  const open = join(dir.path, 'open')
  mkdirSync(open, { mode: 0o755 })
  for (const partyDir of ['relative/path', '/', open]) {
    expect(codeOf(() => openPiLayout({ partyDir, user: userOptions }))).toBe('root_refused')
  }
  const again = () => openPiLayout({ partyDir: it.partyDir, user: userOptions })
  expect(codeOf(again)).toBe('run_root_locked')
})

test('PR-08 W-68 a socket path over 107 bytes is refused with both lengths, before anything is made', async () => {
  using it = opened()
  const channel = `discord:${'9'.repeat(100)}` as const
  await expect(it.layout.prepare(channel)).rejects.toThrow(/bytes too long for this channel.*allows 107/)
  using dir = ownDir()
  const long = join(dir.path, 'ü'.repeat(45))
  expect(() => openPiLayout({ partyDir: long, user: userOptions })).toThrow(/bytes too long/)
})

test('the install id is the same after a restart, the epoch is not', () => {
  using dir = ownDir()
  const first = openPiLayout({ partyDir: join(dir.path, 'p'), user: userOptions })
  first.close()
  const second = openPiLayout({ partyDir: join(dir.path, 'p'), user: userOptions })
  expect(second.installId).toBe(first.installId)
  expect(second.epoch).not.toBe(first.epoch)
  second.close()
})

const USES: readonly [string, (layout: PiLayout, channel: `${string}:${string}`) => unknown][] = [
  ['claim', (layout, channel) => layout.claim(channel)],
  ['attachmentDir', (layout, channel) => layout.attachmentDir(channel)],
  ['sessionsDir', (layout, channel) => layout.sessionsDir(channel)],
]

test.each(USES)('PR-04 an alias of a channel is refused by %s', (_, use) => {
  using it = opened()
  it.layout.claim('a:b_c')
  use(it.layout, 'a:b_c')
  expect(() => use(it.layout, 'a:b:c')).toThrow(/alias of a:b_c/)
  expect(codeOf(() => use(it.layout, 'a:b c'))).toBe('channel_alias')
  expect(readFileSync(join(it.partyDir, 'a_b_c', '.channel-key'), 'utf8')).toBe('a:b_c')
})

test('PR-04 an alias of a channel is refused where files move: prepare, putAttachment, archive', async () => {
  using it = opened()
  it.layout.claim('a:b_c')
  const file = { name: 'x', data: new Uint8Array(1) }
  await expect(it.layout.prepare('a:b c')).rejects.toThrow(/alias/)
  await expect(it.layout.putAttachment('a:b c', file)).rejects.toThrow(/alias/)
  await expect(it.layout.archive('a:b c')).rejects.toThrow(/alias/)
  expect(readdirSync(join(it.partyDir, 'a_b_c'))).toEqual(['.channel-key'])
})

test('PR-03 PR-04 keys that are too long, or half a character, are refused', () => {
  using it = opened()
  expect(codeOf(() => it.layout.claim(`a:${'b'.repeat(255)}`))).toBe('input_invalid')
  expect(codeOf(() => it.layout.claim(`a:${'😀'.slice(0, 1)}`))).toBe('input_invalid')
})

test.each(['run', 'workspace'])(
  'PR-05 a link in place of %s was made on the host, and is refused',
  async (name) => {
    using it = opened()
    await (await it.layout.prepare('a:1')).dispose()
    const path = join(it.partyDir, 'a_1', name)
    rmSync(path, { recursive: true })
    symlinkSync(it.outside, path)
    await expect(it.layout.prepare('a:1')).rejects.toMatchObject({ code: 'root_refused' })
    expect(readdirSync(it.outside)).toEqual([])
  },
)

test('PR-05 a link in place of the channel’s directory is refused', async () => {
  using it = opened()
  symlinkSync(it.outside, join(it.partyDir, 'a_1'))
  await expect(it.layout.prepare('a:1')).rejects.toMatchObject({ code: 'root_refused' })
  expect(readdirSync(it.outside)).toEqual([])
})

test.each(['attachments', 'outbox', 'sessions'])(
  'PR-05 a guest’s link, file or loop in place of %s is replaced and never followed',
  async (name) => {
    using it = opened()
    await (await it.layout.prepare('a:1')).dispose()
    const path = join(it.partyDir, 'a_1', 'workspace', name)
    for (const plant of [
      () => symlinkSync(it.outside, path),
      () => symlinkSync('/nowhere/at/all', path),
      () => symlinkSync(path, path),
      () => writeFileSync(path, 'no directory'),
    ]) {
      rmSync(path, { recursive: true, force: true })
      plant()
      await (await it.layout.prepare('a:1')).dispose()
      expect(lstatSync(path).isDirectory()).toBe(true)
    }
    expect(readdirSync(it.outside)).toEqual([])
  },
)

test('MD-01 AT-05 AT-06 [workspace:no-planted-links] an attachment is written in place, whatever a guest planted there', async () => {
  using it = opened()
  const { layout, outside } = it
  const directory = layout.attachmentDir('a:1')
  const target = join(outside, 'host-file')
  writeFileSync(target, 'untouched')
  const file = { name: 'm1-0-cat.png', data: Uint8Array.from([1, 2, 3]) }
  const path = join(directory, file.name)
  symlinkSync(target, path)
  await layout.putAttachment('a:1', file)
  expect([...readFileSync(path)]).toEqual([1, 2, 3])
  expect([lstatSync(path).isFile(), lstatSync(path).mode & 0o777, lstatSync(path).uid]).toEqual([
    true,
    0o600,
    account.uid,
  ])
  rmSync(path)
  mkdirSync(join(path, 'deep'), { recursive: true })
  await layout.putAttachment('a:1', file)
  expect([...readFileSync(path)]).toEqual([1, 2, 3])
  renameSync(directory, `${directory}-moved`)
  symlinkSync(outside, directory)
  await layout.putAttachment('a:1', file)
  expect(lstatSync(directory).isDirectory()).toBe(true)
  expect([...readFileSync(path)]).toEqual([1, 2, 3])
  expect(readdirSync(outside)).toEqual(['host-file'])
  expect(readFileSync(target, 'utf8')).toBe('untouched')
})

test('AT-05 a guest that swaps the directory for a link again and again never gets a write outside', async () => {
  using it = opened()
  const { layout, outside } = it
  const directory = layout.attachmentDir('a:1')
  let swapping = true
  const guest = (async () => {
    while (swapping) {
      for (const step of [
        () => renameSync(directory, `${directory}-real`),
        () => symlinkSync(outside, directory),
        () => rmSync(directory),
        () => renameSync(`${directory}-real`, directory),
      ]) {
        try {
          step()
        } catch {}
        await new Promise((done) => setImmediate(done))
      }
    }
  })()
  let written = 0
  for (let round = 0; round < 150; round += 1) {
    const file = { name: `f${round % 5}`, data: new Uint8Array(64) }
    await layout.putAttachment('a:1', file).then(
      () => (written += 1),
      () => {},
    )
  }
  swapping = false
  await guest
  expect(readdirSync(outside)).toEqual([])
  expect(written).toBeGreaterThan(0)
})

test('PR-18 [workspace:no-planted-links] conversations are moved into the archive; links, directories and other files stay', async () => {
  using it = opened()
  const { layout, outside } = it
  const sessions = layout.sessionsDir('a:1')
  writeFileSync(join(outside, 'host.jsonl'), 'of the host')
  writeFileSync(join(sessions, 'one.jsonl'), 'first')
  writeFileSync(join(sessions, 'two.jsonl'), 'second')
  writeFileSync(join(sessions, 'notes.txt'), '')
  symlinkSync(join(outside, 'host.jsonl'), join(sessions, 'link.jsonl'))
  mkdirSync(join(sessions, 'dir.jsonl'))
  symlinkSync(outside, join(sessions, 'archive'))
  const now = new Date('2026-03-04T05:06:07.089Z')
  expect((await layout.archive('a:1', now)).toSorted()).toEqual(['one.jsonl', 'two.jsonl'])
  const place = join(sessions, 'archive', '2026-03-04T05-06-07-089Z')
  expect(readFileSync(join(place, 'one.jsonl'), 'utf8')).toBe('first')
  expect(readdirSync(sessions).toSorted()).toEqual(['archive', 'dir.jsonl', 'link.jsonl', 'notes.txt'])
  expect(readdirSync(outside)).toEqual(['host.jsonl'])
  writeFileSync(join(sessions, 'one.jsonl'), 'another')
  await layout.archive('a:1', now)
  expect(readFileSync(join(place, 'one.jsonl'), 'utf8')).toBe('first')
  expect(readFileSync(join(`${place}-2`, 'one.jsonl'), 'utf8')).toBe('another')
})

test('PR-05 PR-18 a guest’s names that are no text brick nothing: they are archived and erased like others', async () => {
  using it = opened()
  const { layout } = it
  const sessions = layout.sessionsDir('a:1')
  execFileSync('sh', ['-c', "b=$(printf '\\377'); : > $b.jsonl && mkdir $b"], { cwd: sessions })
  expect(await layout.archive('a:1')).toHaveLength(1)
  expect(readdirSync(sessions, 'latin1').toSorted()).toEqual(['archive', '\u00ff'])
  await layout.erase('a:1')
  expect(await layout.sweep()).toEqual([])
  expect(readdirSync(layout.partyDir).filter((name) => name.startsWith('.gone'))).toEqual([])
})

test('PR-18 nothing to move: no archive is made, and a replaced attachments directory is repaired', async () => {
  using it = opened()
  const attachments = it.layout.attachmentDir('a:1')
  rmSync(attachments, { recursive: true })
  symlinkSync(it.outside, attachments)
  expect(await it.layout.archive('a:1')).toEqual([])
  expect(lstatSync(attachments).isDirectory()).toBe(true)
  expect(readdirSync(it.layout.sessionsDir('a:1'))).toEqual([])
})

test('a sweep removes run directories of dead hosts, and none that is in use', async () => {
  using it = opened()
  const used = await it.layout.prepare('a:1')
  const left = join(it.partyDir, 'a_1', 'run', '0123abcd')
  mkdirSync(left)
  writeFileSync(join(left, 'worker.sock'), '')
  mkdirSync(join(it.partyDir, 'process'), { recursive: true })
  expect(await it.layout.sweep()).toEqual(['a_1/0123abcd'])
  expect([existsSync(left), existsSync(used.runDir)]).toEqual([false, true])
})

test('PR-19 whatever a plain process left in its run directory goes, also where no path reaches it', async () => {
  using it = opened()
  const step =
    'n=$(printf %0240d 0); i=0; while [ $i -lt 40 ]; do mkdir $n && cd -P $n || exit 1; i=$((i+1)); done'
  const [one, other] = await Promise.all([it.layout.prepare('a:1'), it.layout.prepare('a:1')])
  for (const { runDir } of [one, other]) execFileSync('sh', ['-c', step], { cwd: runDir })
  await one.dispose()
  it.layout.close()
  const next = openPiLayout({ partyDir: it.partyDir, user: userOptions })
  expect(await next.sweep()).toHaveLength(1)
  expect([existsSync(one.runDir), existsSync(other.runDir)]).toEqual([false, false])
  next.close()
})
