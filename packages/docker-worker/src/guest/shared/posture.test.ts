import { mkdirSync, readdirSync, statfsSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { isWorkerHello, limits } from '@sandbox/protocol'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { CUT_MARK, readPosture } from './posture.ts'

const SEALED = {
  status: `Name:\tnode
Uid:\t1000\t1000\t1000\t1000
Gid:\t1001\t1001\t1001\t1001
Groups:\t1001 1002
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
Seccomp_filters:\t1
`,
  mountinfo: `100 99 0:50 / / ro,relatime master:1 - overlay overlay rw,lowerdir=/host/secret
101 100 0:51 / /proc rw,nosuid - proc proc rw
102 100 8:1 /spaces/a /workspace rw,nosuid,nodev - ext4 /dev/sda1 rw
103 100 8:1 /run/x /run/with\\040space ro - ext4 /dev/sda1 rw
`,
  dev: `Inter-|   Receive
 face |bytes
    lo:       0       0
`,
  route: 'Iface\tDestination\n',
  ipv6: '00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo\n',
}

const NO_LIMITS = {
  memoryBytes: null,
  swapBytes: null,
  cpus: null,
  pids: null,
  openFiles: null,
  fileBytes: null,
  coreBytes: null,
  tmpBytes: null,
}

/** A `/proc/self` made of files. */
function fakeSelf(path: string, files: Partial<typeof SEALED> = {}) {
  const { status, mountinfo, dev, route, ipv6 } = { ...SEALED, ...files }
  mkdirSync(`${path}/net`)
  mkdirSync(`${path}/ns`)
  writeFileSync(`${path}/status`, status)
  writeFileSync(`${path}/mountinfo`, mountinfo)
  writeFileSync(`${path}/net/dev`, dev)
  writeFileSync(`${path}/net/route`, route)
  writeFileSync(`${path}/net/ipv6_route`, ipv6)
  symlinkSync('net:[4026531840]', `${path}/ns/net`)
  symlinkSync('pid:[4026531836]', `${path}/ns/pid`)
  symlinkSync('pid:[4026531836]', `${path}/ns/pid_for_children`)
}

function hello(posture: ReturnType<typeof readPosture>) {
  const message = { protocol: 1, mode: 'sealed', posture }
  expect(isWorkerHello(message)).toBe(true)
  expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThanOrEqual(limits.WORKER_MESSAGE_BYTES)
  return posture
}

test('decision 2: reads a sealed posture; mount sources and environment values never travel', () => {
  using self = tempDir()
  fakeSelf(self.path)
  const sources = { self: self.path, root: '/nowhere', cgroup: '/nowhere', tmp: '/nowhere' }
  const posture = hello(readPosture({ ...sources, environment: ['PATH', 'HOME'] }))
  expect(posture).toEqual({
    runtime:
      process.versions.bun === undefined ? `node ${process.versions.node}` : `bun ${process.versions.bun}`,
    uid: 1000,
    gid: 1001,
    groups: [1001, 1002],
    capabilities: {
      inheritable: '0000000000000000',
      permitted: '0000000000000000',
      effective: '0000000000000000',
      bounding: '0000000000000000',
      ambient: '0000000000000000',
    },
    noNewPrivs: true,
    seccomp: 2,
    interfaces: ['lo'],
    routes: [],
    rootReadOnly: true,
    mounts: [
      { target: '/', type: 'overlay', options: 'ro,relatime' },
      { target: '/proc', type: 'proc', options: 'rw,nosuid' },
      { target: '/workspace', type: 'ext4', options: 'rw,nosuid,nodev' },
      { target: '/run/with space', type: 'ext4', options: 'ro' },
    ],
    environment: ['HOME', 'PATH'],
    namespaces: ['net:[4026531840]', 'pid:[4026531836]'],
    limits: NO_LIMITS,
    sockets: [],
  })
})

/** Makes files and the directories that they are in. */
function write(top: string, files: Record<string, string>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(top, path)), { recursive: true })
    writeFileSync(join(top, path), text)
  }
}

const PROCESS_LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max file size             1024                 67108864             bytes
Max core file size        0                    0                    bytes
Max open files            256                  512                  files
Max nice priority         0                    0
Max address space         unlimited            unlimited            bytes
`

test('T65 reads the limits of either version of control groups, and of the process the hard ones', () => {
  using self = tempDir()
  using one = tempDir()
  using two = tempDir()
  write(self.path, { limits: PROCESS_LIMITS })
  write(one.path, {
    'memory/memory.limit_in_bytes': '536870912\n',
    'memory/memory.memsw.limit_in_bytes': '536875008\n',
    'cpu/cpu.cfs_quota_us': '150000\n',
    'cpu/cpu.cfs_period_us': '100000\n',
    'pids/pids.max': '64\n',
  })
  write(two.path, {
    'cgroup.controllers': 'cpu memory pids\n',
    'memory.max': '536870912\n',
    'memory.swap.max': '4096\n',
    'cpu.max': '150000 100000\n',
    'pids.max': '64\n',
  })
  const group = { memoryBytes: 536_870_912, swapBytes: 4096, cpus: 1.5, pids: 64 }
  const own = { openFiles: 512, fileBytes: 67_108_864, coreBytes: 0 }
  const { bsize, blocks } = statfsSync(self.path)
  for (const cgroup of [one.path, two.path]) {
    const { limits } = hello(readPosture({ self: self.path, root: '/nowhere', cgroup, tmp: self.path }))
    expect(limits).toEqual({ ...group, ...own, tmpBytes: bsize * blocks })
  }
})

test('T65 a limit that is not set is none, in every spelling of the kernel', () => {
  using self = tempDir()
  using one = tempDir()
  using two = tempDir()
  write(self.path, { limits: PROCESS_LIMITS.replaceAll(/\d+( +)(bytes|files)/g, 'unlimited$1$2') })
  write(one.path, {
    'memory/memory.limit_in_bytes': '9223372036854771712\n',
    'memory/memory.memsw.limit_in_bytes': '9223372036854771712\n',
    'cpu/cpu.cfs_quota_us': '-1\n',
    'cpu/cpu.cfs_period_us': '100000\n',
    'pids/pids.max': 'max\n',
  })
  write(two.path, { 'cgroup.controllers': 'x\n', 'memory.max': 'max\n', 'cpu.max': 'max 100000\n' })
  for (const cgroup of [one.path, two.path]) {
    const posture = hello(readPosture({ self: self.path, root: '/nowhere', cgroup, tmp: '/nowhere' }))
    expect(posture.limits).toEqual(NO_LIMITS)
  }
})

test('T65 finds sockets in the usual places, those that listen, and those that it was started with; the workspace is left alone', async () => {
  using self = tempDir()
  using root = tempDir()
  mkdirSync(`${self.path}/net`)
  mkdirSync(`${self.path}/fd`)
  mkdirSync(`${root.path}/run/sandbox`, { recursive: true })
  mkdirSync(`${root.path}/workspace`)
  writeFileSync(`${root.path}/run/file`, '')
  const paths = ['/run/sandbox/worker.sock', '/run/engine.sock', '/workspace/planted.sock']
  const servers = await Promise.all(paths.map((path) => listenAt(`${root.path}${path}`)))
  const row = (flags: string, name: string) => `0000: 00000002 00000000 ${flags} 0001 01 1234 ${name}`
  const table = [row('00010000', '@hidden'), row('00000000', '@closed'), row('00010000', '/far away')]
  writeFileSync(`${self.path}/net/unix`, ['Num RefCount', ...table, ''].join('\n'))
  symlinkSync('socket:[77]', `${self.path}/fd/9`)
  symlinkSync('pipe:[78]', `${self.path}/fd/1`)
  try {
    expect(hello(readPosture({ self: self.path, root: root.path })).sockets).toEqual([
      '/far away',
      '/run/engine.sock',
      '/run/sandbox/worker.sock',
      '@hidden',
      'fd:9',
    ])
  } finally {
    for (const server of servers) server.close()
  }
})

async function listenAt(path: string): Promise<Server> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(path, resolve))
  return server
}

test('sees interfaces and routes in either table', () => {
  using self = tempDir()
  fakeSelf(self.path, {
    dev: `${SEALED.dev}  eth0: 1 2\n`,
    route: `${SEALED.route}eth0\t00000000\t0100000A\n`,
    ipv6: `${SEALED.ipv6}${SEALED.ipv6.replace('lo\n', 'tun0\n')}`,
  })
  const posture = readPosture({ self: self.path })
  expect(posture.interfaces).toEqual(['lo', 'eth0'])
  expect(posture.routes).toEqual(['eth0', 'tun0'])
})

test('any id of root counts as root', () => {
  using self = tempDir()
  fakeSelf(self.path, { status: SEALED.status.replace('1000\t1000\t1000\t1000', '1000\t1000\t0\t1000') })
  expect(readPosture({ self: self.path }).uid).toBe(0)
})

test('the root counts as read-only when the mount says so and a write fails, not by one alone', () => {
  using self = tempDir()
  using root = tempDir()
  fakeSelf(self.path)
  expect(readPosture({ self: self.path, root: root.path }).rootReadOnly).toBe(false)
  expect(readdirSync(root.path)).toEqual([])
  using open = tempDir()
  fakeSelf(open.path, { mountinfo: SEALED.mountinfo.replace('/ / ro', '/ / rw') })
  expect(readPosture({ self: open.path, root: '/nowhere' }).rootReadOnly).toBe(false)
  using covered = tempDir()
  fakeSelf(covered.path, { mountinfo: `${SEALED.mountinfo}104 100 0:60 / / rw - tmpfs tmpfs rw\n` })
  expect(readPosture({ self: covered.path, root: '/nowhere' }).rootReadOnly).toBe(false)
})

test('what cannot be read is reported as the open state', () => {
  using self = tempDir()
  const sources = { self: self.path, root: '/nowhere', cgroup: '/nowhere', tmp: '/nowhere' }
  const posture = hello(readPosture(sources))
  expect(new Set(Object.values(posture.capabilities))).toEqual(new Set(['ffffffffffffffff']))
  expect(posture).toMatchObject({
    noNewPrivs: false,
    seccomp: 0,
    rootReadOnly: false,
    mounts: [],
    namespaces: [],
    limits: NO_LIMITS,
  })
})

test('lists that are too long are cut so that a hello still fits, and the cut shows', () => {
  using self = tempDir()
  const mounts = Array.from(
    { length: 400 },
    (_, index) => `${index} 1 0:1 / /m/${'漢'.repeat(500)} rw - ext4 x rw`,
  )
  const interfaces = Array.from({ length: 64 }, (_, index) => `${index}${'é'.repeat(200)}`)
  fakeSelf(self.path, {
    mountinfo: mounts.join('\n'),
    dev: `${SEALED.dev}${interfaces.map((name) => `${name}: 1\n`).join('')}`,
    route: `${SEALED.route}${interfaces.map((name) => `${name}\t0\n`).join('')}`,
  })
  const unix = interfaces.map((name) => `0: 2 0 00010000 1 1 1 @${name}\n`)
  writeFileSync(`${self.path}/net/unix`, `head\n${unix.join('')}`)
  const environment = Array.from({ length: 1000 }, (_, index) => `${index}${'é'.repeat(200)}`)
  const posture = hello(readPosture({ self: self.path, environment: [...environment, 'x'.repeat(300)] }))
  expect(posture.mounts.at(-1)?.target).toBe(CUT_MARK)
  expect(posture.environment.at(-1)).toBe(CUT_MARK)
  expect(posture.sockets?.at(-1)).toBe(CUT_MARK)
  using many = tempDir()
  fakeSelf(many.path, {
    mountinfo: Array.from({ length: 257 }, (_, at) => `${at} 1 0:1 / /m rw - x x rw`).join('\n'),
  })
  const cut = hello(readPosture({ self: many.path })).mounts
  expect(cut).toHaveLength(256)
  expect(cut.at(-1)?.target).toBe(CUT_MARK)
})

test('this process: a hello that the protocol accepts', () => {
  const posture = hello(readPosture())
  expect(posture.uid).toBe(process.getuid?.())
  expect(posture.gid).toBe(process.getgid?.())
  expect(posture.interfaces).toContain('lo')
  expect(posture.mounts.map(({ target }) => target)).toContain('/')
  expect(posture.namespaces.length).toBeGreaterThan(5)
})
