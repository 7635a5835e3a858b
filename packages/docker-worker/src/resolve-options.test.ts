import { describe, expect, test } from 'vitest'
import type { DockerDriverOptions } from './options.ts'
import { checkWorkerSpec, resolveDockerOptions } from './resolve-options.ts'

const OPTIONS: DockerDriverOptions = {
  image: 'sandbox-worker:latest',
  installId: 'install-1',
  user: { uid: 1000, gid: 1000 },
  engineSocket: '/run/docker.sock',
}

describe('resolveDockerOptions', () => {
  test('DD-05 fills in the defaults', () => {
    expect(resolveDockerOptions(OPTIONS)).toMatchObject({
      limits: {
        memoryBytes: 512 * 2 ** 20,
        cpus: 1,
        pids: 64,
        openFiles: 256,
        fileBytes: 64 * 2 ** 20,
        tmpBytes: 64 * 2 ** 20,
      },
    })
  })

  test.each<[string, Partial<Record<keyof DockerDriverOptions, unknown>>]>([
    ['image', { image: '' }],
    ['image', { image: '--privileged' }],
    ['image', { image: 'a b' }],
    ['image', { image: 'a\nb' }],
    ['image', { image: undefined }],
    ['installId', { installId: 'short' }],
    ['installId', { installId: 'with space' }],
    ['installId', { installId: 'x'.repeat(129) }],
    ['user.uid', { user: { uid: 0, gid: 1 } }],
    ['user.gid', { user: { uid: 1, gid: 0 } }],
    ['user.uid', { user: { uid: 1.5, gid: 1 } }],
    ['user.uid', { user: { uid: -1, gid: 1 } }],
    ['user.uid', { user: undefined }],
    ['engineSocket', { engineSocket: 'docker.sock' }],
    ['limits.memoryBytes', { limits: { memoryBytes: 64 * 2 ** 20 - 1 } }],
    ['limits.memoryBytes', { limits: { memoryBytes: Number.NaN } }],
    ['limits.cpus', { limits: { cpus: 0 } }],
    ['limits.pids', { limits: { pids: 7 } }],
    ['limits.openFiles', { limits: { openFiles: 1 } }],
    ['limits.fileBytes', { limits: { fileBytes: '1' } }],
    ['limits.tmpBytes', { limits: { tmpBytes: 0 } }],
    ['network', { network: 'bridge' }],
    ['runtime', { runtime: 'sysbox' }],
    ['runtime', { runtime: '' }],
    ['limits.pids', { runtime: 'runsc', limits: { pids: 127 } }],
  ])('DD-02 DD-03 DD-05 a bad %s is refused by name: %j', (field, change) => {
    const options = { ...OPTIONS, ...change } as DockerDriverOptions
    expect(() => resolveDockerOptions(options)).toThrow(
      expect.objectContaining({ code: 'options_invalid', message: expect.stringContaining(`${field} `) }),
    )
  })
})

test('gVisor has threads of its own: more of them by default', () => {
  expect(resolveDockerOptions({ ...OPTIONS, runtime: 'runsc' }).limits.pids).toBe(128)
  expect(resolveDockerOptions({ ...OPTIONS, runtime: 'kata' }).limits.pids).toBe(64)
})

test('DD-03 root is refused before anything is asked of an engine [worker:never-root]', () => {
  for (const user of [
    { uid: 0, gid: 0 },
    { uid: 0, gid: 1000 },
    { uid: 1000, gid: 0 },
  ]) {
    expect(() => resolveDockerOptions({ ...OPTIONS, user })).toThrow(/a worker never runs as root/)
  }
})

describe('checkWorkerSpec', () => {
  const spec = {
    workerId: '0123456789abcdef',
    channelHash: 'a'.repeat(64),
    epoch: 'e',
    runDir: '/srv/run',
    workspaceDir: '/srv/work',
  }

  test('takes a good one', () => expect(() => checkWorkerSpec(spec)).not.toThrow())

  test.each([
    ['workerId', { workerId: 'XYZ' }],
    ['workerId', { workerId: '0123456789abcdef0' }],
    ['channelHash', { channelHash: 'general' }],
    ['epoch', { epoch: 'a b' }],
    ['epoch', { epoch: '' }],
    ['runDir', { runDir: 'run' }],
    ['runDir', { runDir: '/' }],
    ['runDir', { runDir: '/srv/../run' }],
    ['runDir', { runDir: '/srv/a,b' }],
    ['runDir', { runDir: '/srv/a\nb' }],
    ['workspaceDir', { workspaceDir: '/srv/run' }],
    ['workspaceDir', { workspaceDir: '/srv/run/inside' }],
    ['workspaceDir', { workspaceDir: '/srv' }],
  ])('DD-04 a bad %s is refused by name: %j', (field, change) => {
    expect(() => checkWorkerSpec({ ...spec, ...change })).toThrow(
      expect.objectContaining({ code: 'spec_invalid', message: expect.stringContaining(`spec.${field} `) }),
    )
  })

  test('DD-04 neighbours with a common beginning are fine', () => {
    expect(() => checkWorkerSpec({ ...spec, workspaceDir: '/srv/run-work' })).not.toThrow()
  })
})
