import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
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
  const posture = hello(readPosture({ self: self.path, root: '/nowhere', environment: ['PATH', 'HOME'] }))
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
  })
})

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
  const posture = hello(readPosture({ self: self.path, root: '/nowhere' }))
  expect(new Set(Object.values(posture.capabilities))).toEqual(new Set(['ffffffffffffffff']))
  expect(posture).toMatchObject({
    noNewPrivs: false,
    seccomp: 0,
    rootReadOnly: false,
    mounts: [],
    namespaces: [],
  })
})

test('lists that are too long are cut so that a hello still fits, and the cut shows', () => {
  using self = tempDir()
  const mounts = Array.from(
    { length: 400 },
    (_, index) => `${index} 1 0:1 / /m/${'漢'.repeat(500)} rw - ext4 x rw`,
  )
  fakeSelf(self.path, { mountinfo: mounts.join('\n') })
  const environment = Array.from({ length: 1000 }, (_, index) => `${index}${'é'.repeat(200)}`)
  const posture = hello(readPosture({ self: self.path, environment: [...environment, 'x'.repeat(300)] }))
  expect(posture.mounts.at(-1)?.target).toBe(CUT_MARK)
  expect(posture.environment.at(-1)).toBe(CUT_MARK)
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
