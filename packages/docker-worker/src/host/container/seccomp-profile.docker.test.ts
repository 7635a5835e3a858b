import { randomBytes } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dockerGate } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import type { WorkerNetwork } from '../../options.ts'
import { type ProbeCall, probeProgram, probeResults } from '../../testing/syscall-probe.ts'
import { ENGINE, tinyImage } from '../../testing/tiny-image.ts'
import { testPlace, testUser } from '../../testing/worker-bench.ts'
import { createDockerDriver } from '../docker-driver.ts'
import { LOOPBACK_SECCOMP, SEALED_SECCOMP } from './seccomp-profile.ts'

/** Numbers of x86-64. Tried with zeroes for arguments, most fail; what counts is whether the filter let them try. */
const REFUSED: Readonly<Record<string, number>> = {
  ...{
    shmget: 29,
    shmat: 30,
    shmctl: 31,
    semget: 64,
    semop: 65,
    semctl: 66,
    shmdt: 67,
    msgget: 68,
    msgctl: 71,
  },
  ...{ ptrace: 101, syslog: 103, setuid: 105, setgid: 106, setreuid: 113, setregid: 114, setgroups: 116 },
  ...{ setresuid: 117, setresgid: 119, setfsuid: 122, setfsgid: 123, capset: 126, mknod: 133, uselib: 134 },
  ...{
    personality: 135,
    ustat: 136,
    sysfs: 139,
    setpriority: 141,
    sched_setparam: 142,
    sched_setscheduler: 144,
  },
  ...{ mlockall: 151, vhangup: 153, modify_ldt: 154, pivot_root: 155, adjtimex: 159, chroot: 161, sync: 162 },
  ...{ acct: 163, settimeofday: 164, mount: 165, umount2: 166, swapon: 167, swapoff: 168, reboot: 169 },
  ...{ sethostname: 170, setdomainname: 171, iopl: 172, ioperm: 173, init_module: 175, delete_module: 176 },
  ...{
    quotactl: 179,
    setxattr: 188,
    lsetxattr: 189,
    fsetxattr: 190,
    getxattr: 191,
    listxattr: 194,
    removexattr: 197,
  },
  ...{
    io_setup: 206,
    io_submit: 209,
    lookup_dcookie: 212,
    mbind: 237,
    set_mempolicy: 238,
    get_mempolicy: 239,
  },
  ...{
    mq_open: 240,
    mq_unlink: 241,
    kexec_load: 246,
    add_key: 248,
    request_key: 249,
    keyctl: 250,
    ioprio_set: 251,
  },
  ...{
    migrate_pages: 256,
    mknodat: 259,
    unshare: 272,
    move_pages: 279,
    perf_event_open: 298,
    fanotify_init: 300,
  },
  ...{
    name_to_handle_at: 303,
    open_by_handle_at: 304,
    clock_adjtime: 305,
    setns: 308,
    process_vm_readv: 310,
  },
  ...{ process_vm_writev: 311, kcmp: 312, finit_module: 313, seccomp: 317, kexec_file_load: 320, bpf: 321 },
  ...{ userfaultfd: 323, io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427, open_tree: 428 },
  ...{
    move_mount: 429,
    fsopen: 430,
    fsconfig: 431,
    fsmount: 432,
    fspick: 433,
    clone3: 435,
    pidfd_getfd: 438,
  },
  ...{ process_madvise: 440, mount_setattr: 442, quotactl_fd: 443, landlock_create_ruleset: 444 },
  ...{ memfd_secret: 447, process_mrelease: 448 },
}

const ALLOWED: Readonly<Record<string, number>> = {
  ...{
    read: 0,
    write: 1,
    close: 3,
    stat: 4,
    fstat: 5,
    lstat: 6,
    poll: 7,
    lseek: 8,
    mmap: 9,
    mprotect: 10,
    munmap: 11,
  },
  ...{
    brk: 12,
    rt_sigaction: 13,
    rt_sigprocmask: 14,
    ioctl: 16,
    pread64: 17,
    access: 21,
    pipe: 22,
    sched_yield: 24,
  },
  ...{
    mremap: 25,
    madvise: 28,
    dup: 32,
    nanosleep: 35,
    getpid: 39,
    connect: 42,
    accept: 43,
    sendto: 44,
    shutdown: 48,
  },
  ...{
    bind: 49,
    listen: 50,
    execve: 59,
    wait4: 61,
    kill: 62,
    uname: 63,
    fcntl: 72,
    flock: 73,
    fsync: 74,
    getcwd: 79,
  },
  ...{
    rename: 82,
    mkdir: 83,
    unlink: 87,
    symlink: 88,
    chmod: 90,
    umask: 95,
    gettimeofday: 96,
    getrlimit: 97,
  },
  ...{
    getrusage: 98,
    sysinfo: 99,
    getuid: 102,
    getgid: 104,
    getppid: 110,
    sigaltstack: 131,
    statfs: 137,
    prctl: 157,
  },
  ...{
    gettid: 186,
    futex: 202,
    getdents64: 217,
    set_tid_address: 218,
    clock_gettime: 228,
    openat: 257,
    newfstatat: 262,
  },
  ...{
    eventfd2: 290,
    epoll_create1: 291,
    pipe2: 293,
    getrandom: 318,
    memfd_create: 319,
    copy_file_range: 326,
  },
  ...{ statx: 332, pidfd_open: 434 },
}

/** Bun has a word of its own for a network that cannot be reached. */
const OUTSIDE = process.versions.bun === undefined ? 'ENETUNREACH' : 'ECONNREFUSED'
const [EPERM, ENOSYS, EFAULT] = [-1, -38, -14]
/** An engine answers ENOSYS in place of EPERM for calls that are newer than every one in the profile. */
const refused = (result: number | undefined) => result === EPERM || result === ENOSYS

async function attempt(
  calls: readonly ProbeCall[],
  network: WorkerNetwork = 'none',
): Promise<readonly number[]> {
  const source = `
    import { spawnSync } from 'node:child_process'
    const { status, signal, stdout } = spawnSync('/workspace/probe')
    await guest.report({ status, signal, stdout: stdout.toString('hex') })`
  const told = (await program(source, network, probeProgram(calls))) as { stdout: string }
  expect(told).toMatchObject({ status: 0, signal: null })
  const results = probeResults(Buffer.from(told.stdout, 'hex'))
  expect(results).toHaveLength(calls.length)
  return results
}

/** What a guest with this program reports. */
async function program(
  source: string,
  network: WorkerNetwork,
  probe: Uint8Array = Buffer.alloc(0),
): Promise<unknown> {
  await using place = await testPlace(source)
  const path = join(place.spec.workspaceDir, 'probe')
  writeFileSync(path, probe)
  chmodSync(path, 0o755)
  const installId = `test-${randomBytes(6).toString('hex')}`
  const image = await tinyImage()
  await using driver = createDockerDriver({
    image,
    installId,
    user: testUser(),
    engineSocket: ENGINE,
    network,
  })
  const worker = await driver.start(place.spec)
  const silent = worker.exited.then((exit) => expect.fail(`${JSON.stringify(exit)} ${worker.output()}`))
  const told = await Promise.race([place.report(), silent])
  silent.catch(() => {})
  return told
}

/** The program is machine code for one processor; the list of names is the same for all. */
const unlessX64 = describe.skipIf(!dockerGate() || process.arch !== 'x64')

const named = (calls: Readonly<Record<string, number>>, results: readonly number[]) =>
  Object.keys(calls).map((name, index) => [name, results[index]] as const)

unlessX64('SEALED_SECCOMP in a container', () => {
  test('W-66 the pinned calls that are refused [container:no-privilege]', async () => {
    const results = await attempt(Object.values(REFUSED).map((number) => [number]))
    expect(named(REFUSED, results).filter(([, result]) => !refused(result))).toEqual([])
  })

  test('the pinned calls that are let through', async () => {
    const results = await attempt(Object.values(ALLOWED).map((number) => [number]))
    expect(named(ALLOWED, results).filter(([, result]) => refused(result))).toEqual([])
  })

  test('only Unix sockets, whatever the kernel knows [container:no-network]', async () => {
    const [SOCKET, SOCKETPAIR] = [41, 53]
    const families = {
      inet: 2,
      inet6: 10,
      netlink: 16,
      packet: 17,
      bluetooth: 31,
      alg: 38,
      vsock: 40,
      xdp: 44,
    }
    const calls = Object.values(families).flatMap((family): ProbeCall[] => [
      [SOCKET, family, 1, 0],
      [SOCKET, family, 2, 0],
      [SOCKETPAIR, family, 1, 0, 0],
    ])
    const [unix, pair, ...others] = await attempt([[SOCKET, 1, 1, 0], [SOCKETPAIR, 1, 1, 0, 0], ...calls])
    expect(unix).toBeGreaterThan(0)
    expect(pair).toBe(EFAULT)
    expect(others.filter((result) => !refused(result))).toEqual([])
  })

  test('no clone makes a namespace', async () => {
    const CLONE = 56
    const flags = [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]
    const results = await attempt(flags.map((flag) => [CLONE, flag + 17]))
    expect(results).toEqual(flags.map(() => EPERM))
  })
})

/** Only what differs is tried in a container: the rest is the same data. */
unlessX64('LOOPBACK_SECCOMP in a container', () => {
  const [SOCKET, SOCKETPAIR, INET] = [41, 53, 2]

  test('decision 21: TCP sockets of IPv4, with any flags, and Unix sockets', async () => {
    const flags = [0, 0x8_0000, 0x800, 0x8_0800]
    const calls = flags.flatMap((flag): ProbeCall[] => [
      [SOCKET, INET, 1 + flag, 0],
      [SOCKET, INET, 1 + flag, 6],
    ])
    const results = await attempt([...calls, [SOCKET, 1, 1, 0], [SOCKETPAIR, 1, 1, 0, 0]], 'loopback')
    expect(results.slice(0, 9).every((result) => result > 0)).toBe(true)
    expect(results[9]).toBe(EFAULT)
  })

  test('decision 21: no UDP, no raw socket, no other family, no other call [container:no-network]', async () => {
    const types = { datagram: 2, raw: 3, seqpacket: 5, packet: 10 }
    const families = { inet6: 10, netlink: 16, packet: 17, bluetooth: 31, alg: 38, vsock: 40, xdp: 44 }
    const streams = { sctp: 132, smc: 256, mptcp: 262, udp: 17 }
    const sockets = [
      ...Object.values(types).map((type): ProbeCall => [SOCKET, INET, type, 0]),
      ...Object.values(streams).map((protocol): ProbeCall => [SOCKET, INET, 1, protocol]),
      ...Object.values(families).map((family): ProbeCall => [SOCKET, family, 1, 0]),
      [SOCKETPAIR, INET, 1, 0, 0] as const,
    ]
    const others = Object.values(REFUSED).map((number) => [number] as const)
    const results = await attempt([...sockets, ...others], 'loopback')
    expect(results.slice(0, sockets.length).filter((result) => !refused(result))).toEqual([])
    expect(named(REFUSED, results.slice(sockets.length)).filter(([, result]) => !refused(result))).toEqual([])
  })

  test('decision 21: the guest of a worker with a loopback port reaches that port and nothing else', async () => {
    const told = await program(
      `import { createServer, connect } from 'node:net'
      import { createSocket } from 'node:dgram'
      const reach = (port, host) => new Promise((resolve) => {
        const socket = connect({ port, host })
        socket.on('connect', () => resolve('connected')).on('error', (error) => resolve(error.code))
      })
      const server = createServer(() => {})
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
      const udp = await new Promise((resolve) => {
        const refused = (error) => resolve(error.code ?? 'refused')
        try { createSocket('udp4').on('error', refused).bind(0, '127.0.0.1', () => resolve('done')) } catch (error) { refused(error) }
      })
      await guest.report({
        loopback: await reach(server.address().port, '127.0.0.1'),
        outside: await reach(80, '192.0.2.1'),
        udp,
      })`,
      'loopback',
    )
    expect(told).toMatchObject({ loopback: 'connected', outside: OUTSIDE })
    expect((told as { udp: string }).udp).not.toBe('done')
  })
})

test('decision 21: the second profile is the first, and TCP by both of its names', () => {
  const { syscalls, ...rest } = LOOPBACK_SECCOMP
  const { syscalls: sealed, ...same } = SEALED_SECCOMP
  expect(rest).toEqual(same)
  expect(syscalls.slice(0, -2)).toEqual(sealed)
  const tcp = (protocol: number) => ({
    names: ['socket'],
    action: 'SCMP_ACT_ALLOW',
    args: [
      { index: 0, value: 2, op: 'SCMP_CMP_EQ' },
      { index: 1, value: 15, valueTwo: 1, op: 'SCMP_CMP_MASKED_EQ' },
      { index: 2, value: protocol, op: 'SCMP_CMP_EQ' },
    ],
  })
  expect(syscalls.slice(-2)).toEqual([tcp(0), tcp(6)])
})

test('W-66 the profile names none of the refused calls but clone3, and all of the allowed ones', () => {
  const lets = SEALED_SECCOMP.syscalls
    .filter(({ action }) => action === 'SCMP_ACT_ALLOW')
    .flatMap(({ names }) => names)
  expect(Object.keys(REFUSED).filter((name) => lets.includes(name))).toEqual([])
  expect(Object.keys(ALLOWED).filter((name) => !lets.includes(name))).toEqual([])
})
