/** The account a worker runs as. Neither may be 0. */
export interface WorkerUser {
  readonly uid: number
  readonly gid: number
}

/** What one worker may use. Every field has a default. */
export interface WorkerLimits {
  /** Memory with swap and tmpfs in it. Default 512 MiB, at least 64 MiB. */
  readonly memoryBytes?: number
  /** Processor cores, fractions allowed. Default 1. */
  readonly cpus?: number
  /** Processes and threads. Default 64, at least 8. */
  readonly pids?: number
  /** Open files per process. Default 256, at least 32. */
  readonly openFiles?: number
  /** Largest file that the worker can write. Default 64 MiB, at least 1 MiB. */
  readonly fileBytes?: number
  /** Size of `/tmp`, which counts as memory. Default 64 MiB, at least 1 MiB. */
  readonly tmpBytes?: number
}

/**
 * What stands between a worker and the kernel: `runc` is a plain container, `runsc` is gVisor, `kata` a small virtual
 * machine. The engine has to know it; `check()` refuses an engine that does not.
 */
export type WorkerRuntime = 'runc' | 'runsc' | 'kata'

/**
 * Which sockets a worker may make: `none` means Unix sockets alone; `loopback` adds TCP on 127.0.0.1, for programs that
 * speak to the host through a forwarder inside. Neither reaches anything outside the container.
 */
export type WorkerNetwork = 'none' | 'loopback'

/**
 * What runs inside: `sealed` is our small agent, one turn per worker; `pi` is the real Pi coding agent, which takes turn
 * after turn of its channel; `precheck` runs one script, and is in the image of `sealed`.
 */
export type WorkerGuest = 'sealed' | 'pi' | 'precheck'

/** Options of `createDockerDriver`. */
export interface DockerDriverOptions {
  /** Name or id of an image that `sandbox-worker build` made, for the guest `pi` with `--pi`. */
  readonly image: string
  /**
   * Default `sealed`. Workers of the guest `pi` have the network `loopback`, and larger limits by default: 1.5 GiB of
   * memory, 512 MiB of them for `/tmp`, 256 processes, files of 256 MiB. Those of `precheck` see their workspace
   * read-only, and have smaller ones: 256 MiB of memory, 16 MiB of them for `/tmp`, 32 processes, files of 16 MiB.
   */
  readonly guest?: WorkerGuest
  /** Marks what belongs to this install, `[A-Za-z0-9_.-]{8,128}`. Two installs must never share it. */
  readonly installId: string
  readonly user: WorkerUser
  /** Absolute path of the engine's socket. Default: `engineSocketPath(process.env)`. */
  readonly engineSocket?: string
  readonly limits?: WorkerLimits
  /** Default `none`. */
  readonly network?: WorkerNetwork
  /** Default: the engine's own, usually `runc`. `runsc` needs at least 128 `limits.pids`, and has them by default. */
  readonly runtime?: WorkerRuntime
  /** Applied to worker output before anybody sees it. Must not throw. Default: unchanged. */
  scrub?(text: string): string
}

/** Options of `createProcessDriver`. */
export interface ProcessDriverOptions {
  /** Absolute path of the run root. The driver keeps its own files in `process/` below it. */
  readonly runRoot: string
  /** Needed when the host is root, refused otherwise unless it is the host's own account. */
  readonly user?: WorkerUser
  /** The program that runs the bundle. Default: the one that runs this host. */
  readonly runtime?: string
  /** Default `sealed`. */
  readonly guest?: WorkerGuest
  /** The guest program. Default: the one of this package. */
  readonly bundle?: string
  /** For `pi`: absolute path of the operator's content folder, which `user` has to be able to read. Default: none. */
  readonly content?: string
  /** Applied to worker output before anybody sees it. Must not throw. Default: unchanged. */
  scrub?(text: string): string
}

/** Options of `buildImage`. */
export interface BuildImageOptions {
  /** What runs inside: our sealed guest with that of prechecks, or `pi`, the real Pi agent. Default `sealed`. */
  readonly guest?: 'sealed' | 'pi'
  /**
   * For `pi`: absolute path of the operator's content folder, copied into the image as it is. What its `index.mjs`
   * exports is described in `@sandbox/docker-worker/pi-content`. Default: none.
   */
  readonly content?: string
  /** Default `sandbox-worker:latest`, for `pi` `sandbox-pi-worker:latest`. */
  readonly tag?: string
  /** Absolute path of the engine's socket. Default: `engineSocketPath(process.env)`. */
  readonly engineSocket?: string
  /**
   * Name or id of an image that the engine has: the guest is put on its files, by the package's `Dockerfile`, and its
   * own runtime runs it. For `sealed` only. Default: none, and nothing but a runtime of this machine is in the image.
   */
  readonly base?: string
  /**
   * The program that runs the bundle inside: Node or Bun for Linux. Default: the one that runs now. With `base`, its
   * path in the base; default `/usr/local/bin/node`.
   */
  readonly runtime?: string
  /** The guest program. Default: the one of this package. */
  readonly bundle?: string
  /** Called with one line of progress, without line break. Must not throw. */
  onProgress?(line: string): void
  readonly signal?: AbortSignal
}

/** What `buildImage` made or found. */
export interface BuiltImage {
  /** The engine's image id. */
  readonly id: string
  readonly tag: string
  /** SHA-256 of everything in the image, hexadecimal: equal inputs give equal hashes. */
  readonly contentHash: string
  /** False when the engine already had it. */
  readonly built: boolean
}
