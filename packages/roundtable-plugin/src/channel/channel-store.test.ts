import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { SandboxPluginError } from '../errors.ts'
import { SandboxChannelStore } from './channel-store.ts'

const put = (path: string, text: string) => writeFileSync(path, text, { mode: 0o600 })

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (SandboxPluginError.isInstance(error)) return error.code
    throw error
  }
  return 'none'
}

test('PL-13 what is turned on and off outlives the host', () => {
  using dir = tempDir()
  const stateFile = join(dir.path, 's', 'channels.json')
  const store = new SandboxChannelStore({ stateFile })
  expect(existsSync(stateFile)).toBe(false)
  expect([store.enable('b:2'), store.enable('a:1'), store.enable('a:1')]).toEqual([true, true, false])
  expect([store.disable('b:2'), store.disable('b:2')]).toEqual([true, false])
  store.enable('discord:1:2')
  expect(new SandboxChannelStore({ stateFile }).list()).toEqual(['a:1', 'discord:1:2'])
  expect([statSync(stateFile).mode & 0o777, statSync(dirname(stateFile)).mode & 0o777]).toEqual([
    0o600, 0o700,
  ])
  expect(readdirSync(dirname(stateFile))).toEqual(['channels.json'])
})

test('PL-03 initial channels count only while there is no file', () => {
  using dir = tempDir()
  const stateFile = join(dir.path, 'channels.json')
  const first = new SandboxChannelStore({ stateFile, initialChannels: ['a:1'] })
  expect(JSON.parse(readFileSync(stateFile, 'utf8'))).toEqual(['a:1'])
  first.disable('a:1')
  expect(new SandboxChannelStore({ stateFile, initialChannels: ['a:1'] }).list()).toEqual([])
})

test.each(['', 'null', '{}', '["a:1"', '[1]', '["nocolon"]', '["Upper:1"]', '["a:"]'])(
  'PL-13 a state file of %j stops the host instead of guessing',
  (text) => {
    using dir = tempDir()
    const stateFile = join(dir.path, 'channels.json')
    put(stateFile, text)
    expect(codeOf(() => new SandboxChannelStore({ stateFile, initialChannels: ['a:1'] }))).toBe(
      'state_invalid',
    )
    expect(readFileSync(stateFile, 'utf8')).toBe(text)
  },
)

test('PL-13 a state file with bytes that are no text stops the host: a damaged key would be that of another channel', () => {
  using dir = tempDir()
  const stateFile = join(dir.path, 'channels.json')
  const bytes = Buffer.from('["fake:\xff1"]', 'latin1')
  writeFileSync(stateFile, bytes, { mode: 0o600 })
  expect(codeOf(() => new SandboxChannelStore({ stateFile }))).toBe('state_invalid')
  expect(readFileSync(stateFile).equals(bytes)).toBe(true)
})

test('PL-13 a file or a directory that others reach, a link and a directory in its place are refused', () => {
  using dir = tempDir()
  const at = (name: string) => join(dir.path, name)
  put(at('open'), '[]')
  chmodSync(at('open'), 0o640)
  symlinkSync(at('open'), at('link'))
  symlinkSync(at('nowhere'), at('dangling'))
  mkdirSync(at('dir'))
  mkdirSync(at('shared'), { mode: 0o755 })
  for (const path of [at('open'), at('link'), at('dangling'), at('dir'), join(at('shared'), 'x')]) {
    expect(
      codeOf(() => new SandboxChannelStore({ stateFile: path })),
      path,
    ).toBe('state_refused')
  }
})

test('PL-02 the file is absolute and outside both roots, links resolved', () => {
  using dir = tempDir()
  const root = join(dir.path, 'root')
  mkdirSync(root, { mode: 0o700 })
  symlinkSync(root, join(dir.path, 'link'))
  const outside = [root]
  for (const stateFile of [
    join(root, 'x.json'),
    join(dir.path, 'link', 'x.json'),
    join(root, 'sub', 'x.json'),
  ]) {
    expect(
      codeOf(() => new SandboxChannelStore({ stateFile, outside })),
      stateFile,
    ).toBe('state_refused')
  }
  expect(() => new SandboxChannelStore({ stateFile: 'x.json', outside })).toThrow(/is not absolute/)
  expect(codeOf(() => new SandboxChannelStore({ stateFile: join(dir.path, 'x.json'), outside }))).toBe('none')
})

test('PL-13 a change that cannot be saved did not happen', () => {
  using dir = tempDir()
  const stateFile = join(dir.path, 'sub', 'channels.json')
  const store = new SandboxChannelStore({ stateFile, initialChannels: ['a:1'] })
  rmSync(join(dir.path, 'sub'), { recursive: true })
  expect(codeOf(() => store.enable('b:2'))).toBe('state_unwritable')
  expect(codeOf(() => store.disable('a:1'))).toBe('state_unwritable')
  expect(store.list()).toEqual(['a:1'])
})

test('W-94 what a crash left beside the file is removed, and nothing else', () => {
  using dir = tempDir()
  const stateFile = join(dir.path, 'channels.json')
  put(stateFile, '["a:1"]')
  put(join(dir.path, '.channels.json.0123456789abcdef.tmp'), '["a:1", "b:')
  put(join(dir.path, '.channels.json.backup'), 'mine')
  expect(new SandboxChannelStore({ stateFile }).list()).toEqual(['a:1'])
  expect(readdirSync(dir.path).sort()).toEqual(['.channels.json.backup', 'channels.json'])
})

test('W-94 a writer that is interrupted in the middle leaves the old text', () => {
  using dir = tempDir()
  const stateFile = join(dir.path, 'channels.json')
  const store = new SandboxChannelStore({ stateFile, initialChannels: ['a:1'] })
  // A directory in the file's place makes the rename fail after the new file was written.
  rmSync(stateFile)
  mkdirSync(join(stateFile, 'x'), { recursive: true })
  expect(codeOf(() => store.enable('b:2'))).toBe('state_unwritable')
  expect(readdirSync(dir.path)).toEqual(['channels.json'])
})

test('PL-13 a key that is none is refused', () => {
  using dir = tempDir()
  const store = new SandboxChannelStore({ stateFile: join(dir.path, 'channels.json') })
  expect(codeOf(() => store.enable('Bad key' as 'a:1'))).toBe('input_invalid')
})
