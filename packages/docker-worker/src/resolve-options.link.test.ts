import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { checkWorkerSpec, resolveDockerOptions } from './resolve-options.ts'

const SPEC = { workerId: '0'.repeat(16), channelHash: '0'.repeat(64), epoch: 'e' }

test.each(['runDir', 'workspaceDir'] as const)(
  'a spec.%s that is a link is refused with its name',
  (field) => {
    using dir = tempDir()
    const spec = { ...SPEC, runDir: join(dir.path, 'run'), workspaceDir: join(dir.path, 'work') }
    for (const path of [spec.runDir, spec.workspaceDir, join(dir.path, 'real')]) mkdirSync(path)
    expect(() => checkWorkerSpec(spec)).not.toThrow()
    symlinkSync(join(dir.path, 'real'), join(dir.path, 'link'))
    expect(() => checkWorkerSpec({ ...spec, [field]: join(dir.path, 'link') })).toThrow(
      expect.objectContaining({
        code: 'spec_invalid',
        message: expect.stringContaining(`spec.${field} is a link`),
      }),
    )
  },
)

test('an engineSocket that is a link is refused with its name', () => {
  using dir = tempDir()
  const engineSocket = join(dir.path, 'docker.sock')
  symlinkSync(join(dir.path, 'elsewhere.sock'), engineSocket)
  const options = { image: 'img:1', installId: 'install-1', user: { uid: 1, gid: 1 }, engineSocket }
  expect(() => resolveDockerOptions(options)).toThrow(
    expect.objectContaining({
      code: 'options_invalid',
      message: expect.stringContaining('engineSocket is a link'),
    }),
  )
})
