import { describe, expect, test } from 'vitest'
import { resolveLimits } from '../../resolve-options.ts'
import { type SealedSpec, sealedCreateBody, sealedName } from './sealed-spec.ts'
import { LOOPBACK_SECCOMP, SEALED_SECCOMP } from './seccomp-profile.ts'

const SPEC: SealedSpec = {
  worker: {
    workerId: '0123456789abcdef',
    channelHash: 'c'.repeat(64),
    epoch: 'e1',
    runDir: '/srv/run/w1',
    workspaceDir: '/srv/spaces/c1',
  },
  installId: 'install-1',
  imageId: 'sha256:1234',
  runtime: 'node',
  user: { uid: 4242, gid: 4343 },
  limits: resolveLimits(),
}

describe('sealedCreateBody', () => {
  test('DD-01 DD-05..DD-09 W-66 the whole body, literally', () => {
    expect(sealedCreateBody(SPEC)).toEqual({
      Image: 'sha256:1234',
      Hostname: 'sandbox',
      User: '4242:4343',
      WorkingDir: '/',
      Entrypoint: ['/sandbox/runtime', '--max-old-space-size=358', '/sandbox/sealed.mjs'],
      Cmd: [],
      Env: ['HOME=/tmp'],
      Labels: {
        'sandbox.install': 'install-1',
        'sandbox.channel': 'c'.repeat(64),
        'sandbox.worker': '0123456789abcdef',
        'sandbox.epoch': 'e1',
        'sandbox.protocol': '1',
      },
      Healthcheck: { Test: ['NONE'] },
      AttachStdin: false,
      AttachStdout: true,
      AttachStderr: true,
      OpenStdin: false,
      StdinOnce: false,
      Tty: false,
      NetworkDisabled: true,
      HostConfig: {
        NetworkMode: 'none',
        Mounts: [
          {
            Type: 'bind',
            Source: '/srv/run/w1',
            Target: '/run/sandbox',
            ReadOnly: true,
            BindOptions: { Propagation: 'rprivate', NonRecursive: true },
          },
          {
            Type: 'bind',
            Source: '/srv/spaces/c1',
            Target: '/workspace',
            ReadOnly: false,
            BindOptions: { Propagation: 'rprivate', NonRecursive: true },
          },
        ],
        Tmpfs: { '/tmp': 'rw,noexec,nosuid,nodev,mode=1777,size=67108864' },
        ReadonlyRootfs: true,
        Privileged: false,
        CapAdd: [],
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges:true', `seccomp=${JSON.stringify(SEALED_SECCOMP)}`],
        IpcMode: 'none',
        PidMode: '',
        UTSMode: '',
        CgroupnsMode: 'private',
        Memory: 536_870_912,
        MemorySwap: 536_870_912,
        NanoCpus: 1_000_000_000,
        PidsLimit: 64,
        Ulimits: [
          { Name: 'nofile', Soft: 256, Hard: 256 },
          { Name: 'core', Soft: 0, Hard: 0 },
          { Name: 'fsize', Soft: 67_108_864, Hard: 67_108_864 },
        ],
        Init: true,
        LogConfig: { Type: 'none', Config: {} },
        RestartPolicy: { Name: 'no' },
        AutoRemove: false,
      },
    })
  })

  test('DD-09 workspaceReadOnly changes that mount and nothing else', () => {
    const body = sealedCreateBody(SPEC)
    const readOnly = sealedCreateBody({ ...SPEC, worker: { ...SPEC.worker, workspaceReadOnly: true } })
    expect(readOnly.HostConfig.Mounts[1]).toEqual({ ...body.HostConfig.Mounts[1], ReadOnly: true })
    const undone = { ...readOnly, HostConfig: { ...readOnly.HostConfig, Mounts: body.HostConfig.Mounts } }
    expect(undone).toEqual(body)
  })

  test('a Bun image gets the flag that Bun knows', () => {
    expect(sealedCreateBody({ ...SPEC, runtime: 'bun' }).Entrypoint).toEqual([
      '/sandbox/runtime',
      '--smol',
      '/sandbox/sealed.mjs',
    ])
  })

  test('a named runtime is the only thing that it changes', () => {
    const body = sealedCreateBody(SPEC)
    expect(sealedCreateBody({ ...SPEC, engineRuntime: 'runsc' })).toEqual({
      ...body,
      HostConfig: { ...body.HostConfig, Runtime: 'runsc' },
    })
  })

  test('decision 21: a loopback port changes the filter and nothing else', () => {
    const body = sealedCreateBody(SPEC)
    expect(sealedCreateBody({ ...SPEC, network: 'none' })).toEqual(body)
    const SecurityOpt = ['no-new-privileges:true', `seccomp=${JSON.stringify(LOOPBACK_SECCOMP)}`]
    expect(sealedCreateBody({ ...SPEC, network: 'loopback' })).toEqual({
      ...body,
      HostConfig: { ...body.HostConfig, SecurityOpt },
    })
  })

  test('the heap follows the memory limit', () => {
    const limits = resolveLimits({ memoryBytes: 100 * 2 ** 20 })
    expect(sealedCreateBody({ ...SPEC, limits }).Entrypoint[1]).toBe('--max-old-space-size=70')
  })

  test('DD-02 names keep two installs apart and fit the engine', () => {
    const [one, two] = ['install-1', 'install-2'].map((id) => sealedName(id, '0123456789abcdef'))
    expect(one).not.toBe(two)
    expect(one).toMatch(/^sandbox-[0-9a-f]{12}-0123456789abcdef$/)
  })
})

describe('SEALED_SECCOMP', () => {
  test('W-66 refuses what it does not name, and never names the dangerous calls', () => {
    const named = SEALED_SECCOMP.syscalls.flatMap(({ names }) => names)
    expect(SEALED_SECCOMP.defaultAction).toBe('SCMP_ACT_ERRNO')
    expect(new Set(named).size).toBe(named.length)
    const never =
      'ptrace process_vm_readv process_vm_writev bpf io_uring_setup io_uring_enter userfaultfd perf_event_open ' +
      'keyctl add_key request_key mount umount2 pivot_root chroot unshare setns mknod mknodat init_module ' +
      'finit_module delete_module kexec_load reboot swapon swapoff personality quotactl syslog acct setuid ' +
      'setgid setresuid setresgid setgroups capset iopl ioperm modify_ldt open_by_handle_at name_to_handle_at ' +
      'move_pages mbind shmget shmat msgget semget mq_open fanotify_init lookup_dcookie kcmp clock_settime'
    expect(never.split(' ').filter((name) => named.includes(name))).toEqual([])
  })

  test('only Unix sockets, only clones without namespaces', () => {
    const rule = (name: string) => SEALED_SECCOMP.syscalls.filter(({ names }) => names.includes(name))
    const unix = [{ index: 0, value: 1, op: 'SCMP_CMP_EQ' }]
    expect(rule('socket').map(({ args }) => args)).toEqual([unix])
    expect(rule('socketpair').map(({ args }) => args)).toEqual([unix])
    expect(rule('clone').map(({ args }) => args)).toEqual([
      [{ index: 0, value: 0x7e020000, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
    ])
    expect(rule('clone3')).toEqual([{ names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: 38 }])
  })
})
