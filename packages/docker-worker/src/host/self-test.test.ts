import type { Posture } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import { resolveLimits } from '../resolve-options.ts'
import { sealedDifferences } from './self-test.ts'

const NONE = '0000000000000000'
const PROFILE = {
  user: { uid: 4242, gid: 4343 },
  limits: resolveLimits(),
  hostNamespaces: ['net:[1]', 'pid:[2]', 'mnt:[3]', 'uts:[4]', 'ipc:[5]'],
}
const mount = (target: string, options: string, type = 'ext4') => ({ target, type, options })
const GOOD: Posture = {
  runtime: 'node 24.21.0',
  uid: 4242,
  gid: 4343,
  groups: [4343],
  capabilities: { inheritable: NONE, permitted: NONE, effective: NONE, bounding: NONE, ambient: NONE },
  noNewPrivs: true,
  seccomp: 2,
  interfaces: ['lo'],
  routes: [],
  rootReadOnly: true,
  mounts: [
    mount('/', 'ro,relatime', 'overlay'),
    mount('/proc', 'rw,nosuid,nodev,noexec,relatime', 'proc'),
    mount('/dev/pts', 'rw', 'devpts'),
    mount('/sys/fs/cgroup/pids', 'ro', 'cgroup'),
    mount('/etc/hostname', 'ro'),
    mount('/sbin/docker-init', 'ro'),
    mount('/tmp', 'rw,nosuid,nodev,noexec,relatime', 'tmpfs'),
    mount('/run/sandbox', 'ro,relatime'),
    mount('/workspace', 'rw,relatime'),
  ],
  environment: ['PATH', 'HOSTNAME', 'HOME'],
  namespaces: ['net:[11]', 'pid:[12]', 'mnt:[13]', 'uts:[14]', 'ipc:[15]'],
  limits: {
    memoryBytes: 512 * 2 ** 20,
    swapBytes: 0,
    cpus: 1,
    pids: 64,
    openFiles: 256,
    fileBytes: 64 * 2 ** 20,
    coreBytes: 0,
    tmpBytes: 64 * 2 ** 20,
  },
  sockets: ['/run/sandbox/worker.sock'],
}
const LIMITS = GOOD.limits as NonNullable<Posture['limits']>

test('T65 a worker inside its walls differs in nothing', () => {
  expect(sealedDifferences(GOOD, PROFILE)).toEqual([])
})

test('PC-09 a workspace that has to be read-only and is not is told', () => {
  const profile = { ...PROFILE, workspaceReadOnly: true }
  expect(sealedDifferences(GOOD, profile)).toEqual(['/workspace is not mounted ro.'])
  const mounts = [...GOOD.mounts.filter(({ target }) => target !== '/workspace'), mount('/workspace', 'ro')]
  expect(sealedDifferences({ ...GOOD, mounts }, profile)).toEqual([])
})

const without = (target: string) => GOOD.mounts.filter((entry) => entry.target !== target)

test.each<[string, Partial<Posture>, string]>([
  ['uid', { uid: 0 }, 'The worker runs as uid 0, not 4242.'],
  ['gid', { gid: 0 }, 'The worker runs as gid 0, not 4343.'],
  ['group', { groups: [4343, 999] }, 'The worker is in other groups: 999.'],
  [
    'capability',
    { capabilities: { ...GOOD.capabilities, bounding: '00000000a80425fb' } },
    'The worker has capabilities: bounding is 00000000a80425fb.',
  ],
  ['privileges', { noNewPrivs: false }, 'The worker can gain privileges: no-new-privileges is off.'],
  ['seccomp', { seccomp: 0 }, 'No system call filter: seccomp is 0, not 2.'],
  ['interface', { interfaces: ['lo', 'eth0'] }, 'The worker has another network interface: "eth0".'],
  ['route', { routes: ['eth0'] }, 'The worker has routes: "eth0".'],
  ['root', { rootReadOnly: false }, 'The root file system can be written.'],
  [
    'mount',
    { mounts: [...GOOD.mounts, mount('/var/run/docker.sock', 'rw')] },
    'The worker has other mounts: "/var/run/docker.sock".',
  ],
  [
    'look-alike mount',
    { mounts: [...GOOD.mounts, mount('/development', 'rw')] },
    'The worker has other mounts: "/development".',
  ],
  [
    'run directory',
    { mounts: [...without('/run/sandbox'), mount('/run/sandbox', 'rw,relatime')] },
    '/run/sandbox is not mounted ro.',
  ],
  ['tmp', { mounts: [...without('/tmp'), mount('/tmp', 'rw,nosuid')] }, '/tmp is not mounted noexec, nodev.'],
  ['workspace', { mounts: without('/workspace') }, 'Nothing is mounted at /workspace.'],
  ['variable', { environment: ['PATH', 'HTTPS_PROXY'] }, 'The worker has another variable: "HTTPS_PROXY".'],
  [
    'namespace',
    { namespaces: ['net:[1]', ...GOOD.namespaces.slice(1)] },
    'The worker shares a namespace with the host: "net:[1]".',
  ],
  [
    'hidden namespace',
    { namespaces: GOOD.namespaces.slice(1) },
    'The worker did not report its net namespace.',
  ],
  [
    'memory',
    { limits: { ...LIMITS, memoryBytes: null } },
    'The limit memoryBytes is not set, not 536870912.',
  ],
  ['swap', { limits: { ...LIMITS, swapBytes: 4096 } }, 'The limit swapBytes is 4096, not 0.'],
  ['cpu share', { limits: { ...LIMITS, cpus: 1.01 } }, 'The limit cpus is 1.01, not 1.'],
  ['pids limit', { limits: { ...LIMITS, pids: 65 } }, 'The limit pids is 65, not 64.'],
  ['limit of files', { limits: { ...LIMITS, openFiles: 1024 } }, 'The limit openFiles is 1024, not 256.'],
  ['file size', { limits: { ...LIMITS, fileBytes: null } }, 'The limit fileBytes is not set, not 67108864.'],
  ['core size', { limits: { ...LIMITS, coreBytes: null } }, 'The limit coreBytes is not set, not 0.'],
  [
    'size of /tmp',
    { limits: { ...LIMITS, tmpBytes: 2 ** 30 } },
    'The limit tmpBytes is 1073741824, not 67108864.',
  ],
  [
    'socket',
    { sockets: ['/run/sandbox/worker.sock', '@engine', 'fd:9'] },
    'The worker has another socket within reach: "@engine", "fd:9".',
  ],
  ['hidden socket', { sockets: [] }, 'The worker does not see its socket /run/sandbox/worker.sock.'],
])('T65 another %s is one sentence', (_name, change, sentence) => {
  expect(sealedDifferences({ ...GOOD, ...change }, PROFILE)).toEqual([sentence])
})

test('T65 less than what was asked for fits, and so does what a kernel rounds up', () => {
  const limits = { ...LIMITS, memoryBytes: 64, cpus: 1.00005, tmpBytes: 64 * 2 ** 20 + 4096, pids: 8 }
  expect(sealedDifferences({ ...GOOD, limits }, PROFILE)).toEqual([])
})

test('T65 a guest of an older build, which reports neither limits nor sockets, is refused with what to do', () => {
  const { limits: _limits, sockets: _sockets, ...old } = GOOD
  const found = sealedDifferences(old, PROFILE)
  expect(found).toHaveLength(2)
  for (const sentence of found) expect(sentence).toContain('"sandbox-worker build"')
})

/** What a worker reports from inside gVisor, release 20221219. */
const IN_GVISOR: Posture = {
  ...GOOD,
  capabilities: { ...GOOD.capabilities, ambient: 'f'.repeat(16) },
  noNewPrivs: false,
  seccomp: 0,
  namespaces: ['net:[157]', 'pid:[158]', 'user:[159]'],
  mounts: GOOD.mounts.map((one) => (one.target === '/tmp' ? { ...one, options: 'rw,noexec' } : one)),
  limits: {
    memoryBytes: null,
    swapBytes: null,
    cpus: null,
    pids: null,
    openFiles: null,
    fileBytes: null,
    coreBytes: null,
    tmpBytes: 64 * 2 ** 20,
  },
}

test('gVisor does not show every wall: that is no difference in gVisor, and nowhere else', () => {
  expect(sealedDifferences(IN_GVISOR, { ...PROFILE, runtime: 'runsc' })).toEqual([])
  for (const runtime of [undefined, 'runc', 'kata'] as const) {
    const profile = { ...PROFILE, ...(runtime === undefined ? {} : { runtime }) }
    expect(sealedDifferences(IN_GVISOR, profile), runtime).toHaveLength(14)
  }
})

test.each<[string, Partial<Posture>]>([
  ['an ambient capability', { capabilities: { ...GOOD.capabilities, ambient: '1' } }],
  ['a permitted capability', { capabilities: { ...IN_GVISOR.capabilities, permitted: 'f'.repeat(16) } }],
  ['a limit of files', { limits: { ...(IN_GVISOR.limits as typeof LIMITS), openFiles: 257 } }],
  ['a large /tmp', { limits: { ...(IN_GVISOR.limits as typeof LIMITS), tmpBytes: null } }],
  ['no namespace of processes', { namespaces: ['net:[157]'] }],
  ['a namespace of the host', { namespaces: [...IN_GVISOR.namespaces, 'mnt:[3]'] }],
  ['a /tmp that can execute', { mounts: GOOD.mounts.filter(({ target }) => target !== '/tmp') }],
  ['a writable root', { rootReadOnly: false }],
  ['a route', { routes: ['eth0'] }],
])('what gVisor shows counts all the same: %s', (_name, change) => {
  expect(sealedDifferences({ ...IN_GVISOR, ...change }, { ...PROFILE, runtime: 'runsc' })).toHaveLength(1)
})

test('Podman adds variables and mounts: its own, read-only, and nowhere else', () => {
  const added = ['/etc/group', '/etc/passwd', '/run/podman-init', '/run', '/var/tmp']
  const inPodman = {
    ...GOOD,
    environment: [...GOOD.environment, 'TERM', 'container'],
    mounts: [...GOOD.mounts, ...added.map((target) => mount(target, 'ro,nosuid', 'tmpfs'))],
  }
  const podman = { ...PROFILE, engine: 'podman' as const }
  expect(sealedDifferences(inPodman, podman)).toEqual([])
  expect(sealedDifferences(inPodman, PROFILE)).toHaveLength(2)
  const writable = added.map((target) => mount(target, 'rw,nosuid', 'tmpfs'))
  expect(sealedDifferences({ ...inPodman, mounts: [...GOOD.mounts, ...writable] }, podman)).toHaveLength(5)
  expect(sealedDifferences({ ...inPodman, environment: ['PATH', 'OTHER'] }, podman)).toHaveLength(1)
})

test('names of a hostile guest are quoted and cut', () => {
  const environment = ['\u001b[31m\n', ...Array.from({ length: 20 }, () => 'x'.repeat(256))]
  const [sentence = ''] = sealedDifferences({ ...GOOD, environment }, PROFILE)
  expect(sentence).toContain('"\\u001b[31m\\n"')
  expect(sentence).toContain('and more')
  expect(sentence.length).toBeLessThan(900)
})
