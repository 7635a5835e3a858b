import type { Posture } from '@sandbox/protocol'

/** What the host says about one worker before it exists. Fixed before any turn is known. */
export interface WorkerSpec {
  /** 16 lowercase hexadecimal characters, unique within an install for ever. */
  readonly workerId: string
  /** 64 lowercase hexadecimal characters: a hash of the channel, never its name. */
  readonly channelHash: string
  /** The host process's epoch, `[A-Za-z0-9_.-]{1,64}`. */
  readonly epoch: string
  /** Absolute path of the directory that holds the worker's socket. The worker sees it read-only. */
  readonly runDir: string
  /** Absolute path of the channel's workspace, neither inside `runDir` nor around it. */
  readonly workspaceDir: string
  /** True mounts the workspace read-only. Absent means writable. */
  readonly workspaceReadOnly?: boolean
}

/** How a worker ended. */
export interface WorkerExit {
  /** Exit code, where one is known. */
  readonly code?: number
  /** Name of the ending signal, such as `SIGKILL`, where one is known. */
  readonly signal?: string
  /**
   * `exited` by itself, `killed` by a signal (removal included), `oom` when the memory limit was hit, `lost` when
   * it cannot be known, for example because the engine died.
   */
  readonly reason: 'exited' | 'killed' | 'oom' | 'lost'
  /**
   * A limit that it met, where that is known: `pids` was seen before its removal, `memory_likely` is a kill that
   * nobody here sent.
   */
  readonly limit?: 'pids' | 'memory_likely'
}

/** One started worker. */
export interface Worker {
  /** The engine's container id, or the process id. */
  readonly id: string
  /** {@link WorkerSpec.workerId} of its spec. */
  readonly workerId: string
  /** Settles once, when the worker has ended. Never rejects. */
  readonly exited: Promise<WorkerExit>
  /** The bounded, scrubbed tail of what it wrote. Diagnostics only: guest text, never an answer. */
  output(): string
  /**
   * Kills and removes the worker. Resolves when it is dead and gone; a second call joins the first, and after a
   * rejection tries again. Rejects with `remove_failed` when it may still run.
   */
  remove(): Promise<void>
}

/** Starts sealed workers. Knows nothing of turns, brokers or credentials. */
export interface Driver extends AsyncDisposable {
  readonly kind: 'docker' | 'process'
  /** `none` means: not a sandbox. Say so wherever a person can see it. */
  readonly isolation: 'container' | 'none'
  /** Checks that workers can be started here. Rejects with a `DriverError` that says how to mend it. */
  check(signal?: AbortSignal): Promise<void>
  /**
   * Starts one worker. An abort rejects with `aborted` once what was begun is removed. After a rejection nothing of it
   * runs, but for `remove_failed`: then it may, and the next start for the same channel removes it first, or rejects
   * with `remove_failed` and starts nothing.
   */
  start(spec: WorkerSpec, signal?: AbortSignal): Promise<Worker>
  /**
   * What a worker would be started from now: a text that changes with the image, by its id, and with the settings of
   * the container, by their hash. Starts that begin later use what it says. Absent where workers cannot be outdated.
   */
  identity?(signal?: AbortSignal): Promise<string>
  /** Compares what a worker found inside with the profile: one plain sentence per difference, `[]` when it fits. */
  verify(posture: Posture): readonly string[]
  /** Removes every worker of this install whose id is not in `live`. Returns the ids of the removed workers. */
  sweep(live: ReadonlySet<string>): Promise<readonly string[]>
}
