import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { type WorkspaceFull, WorkspaceGuard } from './workspace-guard.ts'

const MIB = 2 ** 20

function guardOf(root: string) {
  const told: WorkspaceFull[] = []
  const guard = new WorkspaceGuard({
    layout: { workspaceOf: (channel) => join(root, channel.replace(':', '-')) },
    limitBytes: MIB,
    onFull: (_channel, problem) => told.push(problem),
  })
  return { guard, told, signal: new AbortController().signal }
}

test('W-66 after a turn that left too much nothing is admitted until there is less, though no worker starts anew', async () => {
  using root = tempDir()
  const { guard, told, signal } = guardOf(root.path)
  const directory = join(root.path, 'fake-1')
  mkdirSync(directory)
  await guard.check('fake:1', signal)
  await guard.admit('fake:1', signal)
  writeFileSync(join(directory, 'large'), Buffer.alloc(2 * MIB, 1))
  guard.afterTurn('fake:1', Promise.resolve(), signal)
  const full = { code: 'workspace_full', message: expect.stringContaining(`${MIB} are allowed`) }
  await expect(guard.admit('fake:1', signal)).rejects.toMatchObject(full)
  expect(told).toHaveLength(1)
  await guard.admit('fake:2', signal)
  rmSync(join(directory, 'large'))
  await guard.admit('fake:1', signal)
})

test('W-66 a turn waits for the look after the last one, no longer than it lasts itself', async () => {
  using root = tempDir()
  const { guard, signal } = guardOf(root.path)
  const last = Promise.withResolvers<void>()
  guard.afterTurn('fake:1', last.promise, signal)
  const stop = new AbortController()
  const admitted = guard.admit('fake:1', stop.signal)
  stop.abort(new TypeError('stopped'))
  await expect(admitted).rejects.toThrow('stopped')
  last.resolve()
  await guard.idle()
  await guard.admit('fake:1', signal)
})

test('a channel that has no workspace yet has room', async () => {
  using root = tempDir()
  const { guard, signal } = guardOf(root.path)
  await guard.check('fake:1', signal)
})
