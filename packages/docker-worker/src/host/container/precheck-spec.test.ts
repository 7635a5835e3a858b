import { expect, test } from 'vitest'
import { resolveDockerOptions } from '../../resolve-options.ts'
import { precheckCreateBody } from './precheck-spec.ts'
import { sealedCreateBody } from './sealed-spec.ts'

const MIB = 2 ** 20
const options = {
  image: 'i',
  installId: 'install-1',
  user: { uid: 1000, gid: 1001 },
  engineSocket: '/e.sock',
  guest: 'precheck',
} as const
const worker = {
  workerId: '0123456789abcdef',
  channelHash: 'c'.repeat(64),
  epoch: 'e1',
  runDir: '/srv/run/1',
  workspaceDir: '/srv/bot/1',
}
const spec = {
  worker,
  installId: 'install-1',
  imageId: 'sha256:1',
  runtime: 'node',
  user: options.user,
  limits: resolveDockerOptions(options).limits,
} as const

test('PC-09 the container of a precheck is a sealed one with a program of its own and nothing to write to', () => {
  const { Entrypoint, ...rest } = precheckCreateBody(spec)
  const sealed = sealedCreateBody({ ...spec, worker: { ...worker, workspaceReadOnly: true } })
  expect(rest).toEqual({ ...sealed, Entrypoint: undefined })
  expect(Entrypoint).toEqual(['/sandbox/runtime', '--max-old-space-size=179', '/sandbox/precheck.mjs'])
  const writable = { ...spec, worker: { ...worker, workspaceReadOnly: false }, runtime: 'bun' } as const
  const { HostConfig, Entrypoint: onBun } = precheckCreateBody(writable)
  expect(HostConfig.Mounts.map(({ Target, ReadOnly }) => [Target, ReadOnly])).toEqual([
    ['/run/sandbox', true],
    ['/workspace', true],
  ])
  expect(onBun).toEqual(['/sandbox/runtime', '--smol', '/sandbox/precheck.mjs'])
})

test('PC-09 256 MiB, 1 CPU, 32 processes', () => {
  const { HostConfig } = precheckCreateBody(spec)
  expect(HostConfig).toMatchObject({
    Memory: 256 * MIB,
    MemorySwap: 256 * MIB,
    NanoCpus: 1e9,
    PidsLimit: 32,
    Tmpfs: { '/tmp': `rw,noexec,nosuid,nodev,mode=1777,size=${16 * MIB}` },
  })
})

test('its driver takes limits of the operator, room for gVisor, and no network', () => {
  expect(resolveDockerOptions({ ...options, limits: { pids: 40 } }).limits).toEqual({
    ...spec.limits,
    pids: 40,
  })
  expect(resolveDockerOptions({ ...options, runtime: 'runsc' }).limits).toEqual({ ...spec.limits, pids: 128 })
  expect(resolveDockerOptions(options).network).toBe('none')
  expect(() => resolveDockerOptions({ ...options, network: 'loopback' })).toThrow(/network has to be "none"/)
  expect(() => resolveDockerOptions({ ...options, guest: ['precheck'] as never })).toThrow(/guest has to be/)
})
