import { renameSync, writeFileSync } from 'node:fs'
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
