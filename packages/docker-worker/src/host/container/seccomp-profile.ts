/**
 * The system calls of a worker: an allowlist small enough to start faster than the engine's default, with sockets of
 * the Unix family, or of TCP too. Everything else fails with EPERM. Format: the engine's seccomp profile, whose
 * argument indexes and operators are those of libseccomp's `seccomp_rule_add(3)`.
 *
 * Left out on purpose, among others: `ptrace`, `process_vm_*`, `bpf`, `io_uring_*`, `userfaultfd`,
 * `perf_event_open`, `keyctl`, `mount`, `unshare`, `setns`, `mknod`, extended attributes, everything of System V IPC.
 */
export interface SeccompProfile {
  readonly defaultAction: string
  readonly archMap: readonly { readonly architecture: string; readonly subArchitectures: readonly string[] }[]
  readonly syscalls: readonly SeccompRule[]
}

interface SeccompRule {
  readonly names: readonly string[]
  readonly action: string
  readonly errnoRet?: number
  readonly args?: readonly {
    readonly index: number
    readonly value: number
    readonly valueTwo?: number
    readonly op: string
  }[]
}

const AF_UNIX = 1
const AF_INET = 2
const SOCK_STREAM = 1
/** What of `type` is the type; the rest are flags, such as SOCK_CLOEXEC. */
const SOCK_TYPE_MASK = 0xf
/** Both mean TCP. Others of the same type are SCTP and MPTCP, whose code a container could make the kernel load. */
const TCP_PROTOCOLS = [0, 6]
/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET of clone(2): no new namespace. */
const CLONE_NAMESPACES = 0x7e02_0000
const ENOSYS = 38

const FILES =
  'access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 ' +
  'fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync flock fstat fstatfs fsync ftruncate ' +
  'futimesat getcwd getdents getdents64 inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl lchown ' +
  'link linkat lseek lstat mkdir mkdirat newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev ' +
  'pwritev2 read readahead readlink readlinkat readv rename renameat renameat2 rmdir sendfile splice stat statfs ' +
  'statx symlink symlinkat sync_file_range tee truncate umask unlink unlinkat utime utimensat utimes vmsplice write writev'
const MEMORY =
  'brk madvise membarrier memfd_create mincore mlock mmap mprotect mremap msync munlock munmap pkey_alloc pkey_free ' +
  'pkey_mprotect'
const WAITING =
  'epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 pipe pipe2 poll ppoll ' +
  'pselect6 select signalfd signalfd4 timerfd_create timerfd_gettime timerfd_settime'
const PROCESSES =
  'arch_prctl capget execve execveat exit exit_group fork futex futex_waitv futex_wait futex_wake get_robust_list ' +
  'getegid geteuid getgid getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage ' +
  'getsid gettid getuid kill pause pidfd_open pidfd_send_signal prctl prlimit64 restart_syscall rseq rt_sigaction ' +
  'rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo ' +
  'sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler ' +
  'sched_setaffinity sched_yield set_robust_list set_tid_address setpgid setrlimit setsid sigaltstack tgkill tkill ' +
  'uname vfork wait4 waitid'
const CLOCKS =
  'alarm clock_getres clock_gettime clock_nanosleep getitimer getrandom gettimeofday nanosleep setitimer sysinfo time ' +
  'timer_create timer_delete timer_getoverrun timer_gettime timer_settime times'
const UNIX_SOCKETS =
  'accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg sendmmsg sendmsg ' +
  'sendto setsockopt shutdown'

/** The profile of the sealed mode. Pinned by a test of what it lets through and refuses. */
export const SEALED_SECCOMP: SeccompProfile = {
  defaultAction: 'SCMP_ACT_ERRNO',
  archMap: [
    { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
    { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
  ],
  syscalls: [
    {
      names: [FILES, MEMORY, WAITING, PROCESSES, CLOCKS, UNIX_SOCKETS].join(' ').split(' '),
      action: 'SCMP_ACT_ALLOW',
    },
    {
      names: ['socket', 'socketpair'],
      action: 'SCMP_ACT_ALLOW',
      args: [{ index: 0, value: AF_UNIX, op: 'SCMP_CMP_EQ' }],
    },
    {
      names: ['clone'],
      action: 'SCMP_ACT_ALLOW',
      args: [{ index: 0, value: CLONE_NAMESPACES, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
    },
    // Its flags are behind a pointer, which a filter cannot read. The C library falls back to clone on ENOSYS.
    { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS },
  ],
}

/**
 * {@link SEALED_SECCOMP} and TCP sockets of IPv4, for guests that talk to a forwarder on 127.0.0.1 (decision 21). No
 * UDP, no IPv6, no raw socket, no other protocol over streams. What keeps them on the loopback is the network namespace: it has nothing but `lo`.
 */
export const LOOPBACK_SECCOMP: SeccompProfile = {
  ...SEALED_SECCOMP,
  syscalls: [
    ...SEALED_SECCOMP.syscalls,
    ...TCP_PROTOCOLS.map((protocol) => ({
      names: ['socket'],
      action: 'SCMP_ACT_ALLOW',
      args: [
        { index: 0, value: AF_INET, op: 'SCMP_CMP_EQ' },
        { index: 1, value: SOCK_TYPE_MASK, valueTwo: SOCK_STREAM, op: 'SCMP_CMP_MASKED_EQ' },
        { index: 2, value: protocol, op: 'SCMP_CMP_EQ' },
      ],
    })),
  ],
}
