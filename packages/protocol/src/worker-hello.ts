import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'

const Names = (maxItems: number) => Type.Array(Type.String({ maxLength: 256 }), { maxItems })
const Id = Type.Integer({ minimum: 0, maximum: 4_294_967_295 })
const Hex = Type.String({ pattern: '^[0-9a-f]{1,16}$' })
/** `null` says that there is no limit, or that it could not be read. */
const Limit = Type.Union([Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()])

/**
 * What a worker found by examining itself, before any guest input reached it. Source: `/proc/self/status`,
 * `/proc/net/dev`, `/proc/net/route`, `/proc/net/unix`, `/proc/self/mountinfo`, `/proc/self/ns`, `/proc/self/limits`,
 * `/sys/fs/cgroup`. A worker of an older build leaves out what is optional here: a host says so, and refuses it where
 * its profile asks for it.
 */
export const Posture = Type.Object({
  runtime: Type.String({ maxLength: 64 }),
  uid: Id,
  gid: Id,
  groups: Type.Array(Id, { maxItems: 64 }),
  /** Capability sets as hexadecimal masks. */
  capabilities: Type.Object({
    inheritable: Hex,
    permitted: Hex,
    effective: Hex,
    bounding: Hex,
    ambient: Hex,
  }),
  noNewPrivs: Type.Boolean(),
  /** 0 off, 1 strict, 2 filter. */
  seccomp: Type.Integer({ minimum: 0, maximum: 2 }),
  /** Names of network interfaces. */
  interfaces: Names(64),
  /** Names of interfaces that have a route in the main IPv4 or IPv6 table, loopback left out. */
  routes: Names(64),
  /** True when a write below `/` failed and the mount says `ro`. */
  rootReadOnly: Type.Boolean(),
  mounts: Type.Array(
    Type.Object({
      target: Type.String({ maxLength: 1024 }),
      type: Type.String({ maxLength: 64 }),
      options: Type.String({ maxLength: 1024 }),
    }),
    { maxItems: 256 },
  ),
  /** Names of environment variables. Values never travel. */
  environment: Names(256),
  /** Namespace ids as `/proc/self/ns` names them, such as `net:[4026531840]`. */
  namespaces: Names(16),
  /** What the kernel holds it to: its control group, its process limits, and the size of `/tmp`. */
  limits: Type.Optional(
    Type.Object({
      memoryBytes: Limit,
      /** Swap on top of the memory. */
      swapBytes: Limit,
      cpus: Limit,
      pids: Limit,
      openFiles: Limit,
      fileBytes: Limit,
      coreBytes: Limit,
      tmpBytes: Limit,
    }),
  ),
  /**
   * Sockets that it could talk to: paths of socket files, `@name` for an abstract one that listens, `fd:3` for one that
   * it was started with.
   */
  sockets: Type.Optional(Names(64)),
})
/** What a worker found by examining itself. */
export type Posture = Static<typeof Posture>

/** `POST /worker/hello`: a worker's first message, once per container. */
export const WorkerHello = Type.Object({
  protocol: Type.Integer({ minimum: 0, maximum: 1_000_000 }),
  mode: Type.Union([Type.Literal('sealed'), Type.Literal('pi'), Type.Literal('precheck')]),
  posture: Posture,
})
/** A worker's first message. */
export type WorkerHello = Static<typeof WorkerHello>

/** The host's answer to hello. */
export interface WorkerWelcome {
  readonly protocol: number
  /** To be sent as {@link WORKER_NONCE_HEADER} on every later worker route. */
  readonly workerNonce: string
}

const hello = Compile(WorkerHello)

/** True when `value` is a hello. The protocol version is not compared here. */
export function isWorkerHello(value: unknown): value is WorkerHello {
  return hello.Check(value)
}
