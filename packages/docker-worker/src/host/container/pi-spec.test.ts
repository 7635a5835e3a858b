import { describe, expect, test } from 'vitest'
import { resolveDockerOptions } from '../../resolve-options.ts'
import { piCreateBody } from './pi-spec.ts'
import { sealedCreateBody } from './sealed-spec.ts'

const options = {
  image: 'i',
  installId: 'install-1',
  user: { uid: 1000, gid: 1001 },
  engineSocket: '/e.sock',
}
const { limits } = resolveDockerOptions({ ...options, guest: 'pi' })
const spec = {
  worker: {
    workerId: '0123456789abcdef',
    channelHash: 'c'.repeat(64),
    epoch: 'e1',
    runDir: '/srv/run/1',
    workspaceDir: '/srv/bot/1',
  },
  installId: 'install-1',
  imageId: 'sha256:1',
  runtime: 'node',
  user: { uid: 1000, gid: 1001 },
  limits,
} as const

describe('PD-02 the container of a Pi worker', () => {
  test('has the walls of a sealed one but for the system calls of a loopback port and what is started', () => {
    const body = piCreateBody(spec)
    const { Entrypoint, HostConfig, ...rest } = body
    const sealed = sealedCreateBody({ ...spec, network: 'loopback' })
    expect({ ...rest, HostConfig }).toEqual({ ...sealed, Entrypoint: undefined })
    expect(Entrypoint).toEqual([
      '/sandbox/runtime',
      '--max-old-space-size=1075',
      '--disable-warning=ExperimentalWarning',
      '/sandbox/pi-start.cjs',
    ])
    const bun = piCreateBody({ ...spec, runtime: 'bun' })
    expect(bun.Entrypoint).toEqual(['/sandbox/runtime', '--smol', '/sandbox/pi-start.cjs'])
  })

  test('decision 23 PD-02 PD-03 PD-09: no restart, no network, 1.5 GiB, 256 processes, no log of the engine, nothing in its environment', () => {
    const { Env, NetworkDisabled, HostConfig } = piCreateBody(spec)
    expect([Env, NetworkDisabled, HostConfig.NetworkMode]).toEqual([['HOME=/tmp'], true, 'none'])
    expect(HostConfig).toMatchObject({
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'none' },
      Memory: 1536 * 2 ** 20,
      MemorySwap: 1536 * 2 ** 20,
      NanoCpus: 1e9,
      PidsLimit: 256,
      ReadonlyRootfs: true,
      CapDrop: ['ALL'],
      Tmpfs: { '/tmp': `rw,noexec,nosuid,nodev,mode=1777,size=${512 * 2 ** 20}` },
      Ulimits: [
        { Name: 'nofile', Soft: 256, Hard: 256 },
        { Name: 'core', Soft: 0, Hard: 0 },
        { Name: 'fsize', Soft: 256 * 2 ** 20, Hard: 256 * 2 ** 20 },
      ],
    })
    const [, seccomp] = HostConfig.SecurityOpt
    expect(JSON.parse(seccomp?.slice('seccomp='.length) ?? '')).toMatchObject({
      defaultAction: 'SCMP_ACT_ERRNO',
    })
  })

  test('decision 21: the network of its driver is loopback, and cannot be another', () => {
    expect(resolveDockerOptions({ ...options, guest: 'pi' }).network).toBe('loopback')
    expect(() => resolveDockerOptions({ ...options, guest: 'pi', network: 'none' })).toThrow(
      /network has to be/,
    )
    expect(() => resolveDockerOptions({ ...options, guest: 'other' as 'pi' })).toThrow(/guest has to be/)
    expect(resolveDockerOptions({ ...options, guest: 'pi', limits: { pids: 99 } }).limits).toEqual({
      ...limits,
      pids: 99,
    })
  })
})
