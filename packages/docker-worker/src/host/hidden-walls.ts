import type { WorkerRuntime } from '../options.ts'

/**
 * What gVisor (tried: release 20221219) keeps but does not show in `/proc`, so that no worker can report it. Whatever it
 * does show has to fit as with any other runtime.
 */
const UNSEEN_BY_GVISOR = {
  /** It has no ambient set; what is not permitted could not be in one. */
  capabilities: ['ambient'],
  /** It never lets a program gain privileges, and knows no set-user-ID and no device on a mount. */
  privilege: ['no-new-privileges', 'seccomp', 'nosuid', 'nodev'],
  namespaces: ['ipc', 'mnt', 'uts'],
  /** The engine's control group holds the sandbox as a whole; it enforces the limits of files by itself. */
  limits: ['memoryBytes', 'swapBytes', 'cpus', 'pids', 'openFiles', 'fileBytes', 'coreBytes'],
} as const

/** True when a worker of this runtime cannot see that wall from inside. */
export function hides(
  runtime: WorkerRuntime | undefined,
  kind: keyof typeof UNSEEN_BY_GVISOR,
  what: string,
): boolean {
  return runtime === 'runsc' && (UNSEEN_BY_GVISOR[kind] as readonly string[]).includes(what)
}
