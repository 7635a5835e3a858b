import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { turnOnNewChannels } from './new-channels.ts'

test('a channel is turned on when the configuration first names it, and what the owner turned off stays off', () => {
  using dir = tempDir()
  const path = join(dir.path, 'known.json')
  const on: string[] = []
  const store = { enable: (channel: string) => on.push(channel) > 0 }
  const start = (mode: 'sealed' | 'pi', ...channels: `${string}:${string}`[]) => {
    turnOnNewChannels({ path, mode, channels, store })
    return on.splice(0)
  }
  expect(start('sealed', 'room:a', 'room:b')).toEqual(['room:a', 'room:b'])
  expect(start('sealed', 'room:a', 'room:b', 'room:c')).toEqual(['room:c'])
  expect(start('pi', 'room:a')).toEqual(['room:a'])
  expect(start('sealed', 'room:b')).toEqual([])
  expect(start('sealed', 'room:a', 'room:b')).toEqual(['room:a'])
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual(['pi room:a', 'sealed room:a', 'sealed room:b'])
  expect(statSync(path).mode & 0o777).toBe(0o600)
  writeFileSync(path, '{}')
  expect(() => start('sealed', 'room:a')).toThrow(/is no list of channels/)
})
