import { execFileSync } from 'node:child_process'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { account, ownDir } from '../../test/account.ts'
import { RunPlaces } from './run-places.ts'

test('PC-09 directories that could not be removed after their run go with the next sweep', async () => {
  using dir = ownDir()
  const runRoot = join(dir.path, 'r')
  const places = new RunPlaces({ runRoot, user: account })
  const place = await places.open()
  expect(await places.sweep()).toEqual([])
  renameSync(runRoot, `${runRoot}-away`)
  writeFileSync(runRoot, '')
  await expect(place.dispose()).rejects.toThrow('ENOTDIR')
  await unlink(runRoot)
  renameSync(`${runRoot}-away`, runRoot)
  expect(await places.sweep()).toEqual([basename(dirname(place.runDir))])
  places.close()
})

test('PC-09 whatever a plain process left in its directories goes, also where no path reaches it', async () => {
  using dir = ownDir()
  const places = new RunPlaces({ runRoot: join(dir.path, 'r'), user: account })
  for (const remove of [true, false]) {
    const place = await places.open()
    nest(place.workspaceDir)
    if (remove) await place.dispose()
    else renameSync(dirname(place.runDir), join(places.runRoot, '0'.repeat(16)))
    expect([await places.sweep(), existsSync(place.runDir)]).toEqual([remove ? [] : ['0'.repeat(16)], false])
  }
  places.close()
})

function nest(directory: string): void {
  const step =
    'n=$(printf %0240d 0); i=0; while [ $i -lt 40 ]; do mkdir $n && cd -P $n || exit 1; i=$((i+1)); done'
  execFileSync('sh', ['-c', step], { cwd: directory })
}
