import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { metPidLimit } from './pid-limit.ts'

async function look(files: Readonly<Record<string, string>>): Promise<boolean> {
  using dir = tempDir()
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(dir.path, path)), { recursive: true })
    writeFileSync(join(dir.path, path), text)
  }
  return await metPidLimit(42, { proc: join(dir.path, 'proc'), cgroups: join(dir.path, 'cg') })
}

const V1 = '9:pids:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n'

test.each<[boolean, Readonly<Record<string, string>>]>([
  [true, { 'proc/42/cgroup': V1, 'cg/pids/docker/abc/pids.events': 'max 3\n' }],
  [false, { 'proc/42/cgroup': V1, 'cg/pids/docker/abc/pids.events': 'max 0\n' }],
  [
    true,
    { 'proc/42/cgroup': '0::/system.slice/x.scope\n', 'cg/system.slice/x.scope/pids.events': 'max 1\n' },
  ],
  [false, { 'proc/42/cgroup': '0::/system.slice/x.scope\n' }],
  [false, { 'proc/42/cgroup': '4:cpu:/x\n', 'cg/pids/x/pids.events': 'max 1\n' }],
  [false, {}],
])('T63 %s: %j', async (met, files) => {
  expect(await look(files)).toBe(met)
})
