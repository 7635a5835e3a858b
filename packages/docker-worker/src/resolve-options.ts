import { lstatSync } from 'node:fs'
import { isAbsolute, normalize, resolve, sep } from 'node:path'
import { DriverError, type DriverErrorCode } from './errors.ts'
import { engineSocketPath } from './host/container/engine-socket.ts'
import type { ResolvedLimits } from './host/container/sealed-spec.ts'
import type { WorkerSpec } from './host/driver.ts'
import type {
  DockerDriverOptions,
  WorkerGuest,
  WorkerLimits,
  WorkerNetwork,
  WorkerRuntime,
  WorkerUser,
} from './options.ts'

const MIB = 2 ** 20
/** gVisor's own threads count too: some 40. */
const GVISOR_PIDS = 128
/** A conversation in memory, and what its tools need. */
const PI_LIMITS: WorkerLimits = {
  memoryBytes: 1536 * MIB,
  pids: 256,
  fileBytes: 256 * MIB,
  tmpBytes: 512 * MIB,
}
/** PC-09: one script that looks something up. */
const PRECHECK_LIMITS: WorkerLimits = {
  memoryBytes: 256 * MIB,
  pids: 32,
  fileBytes: 16 * MIB,
  tmpBytes: 16 * MIB,
}
const GUEST_LIMITS: Readonly<Record<WorkerGuest, WorkerLimits>> = {
  sealed: {},
  pi: PI_LIMITS,
  precheck: PRECHECK_LIMITS,
}
const MAX_ID = 2 ** 31 - 1

/** A tag or name of an image: no whitespace, no leading dash, so that it can never be read as an option. */
const IMAGE = /^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,254}$/
const INSTALL_ID = /^[A-Za-z0-9_.-]{8,128}$/

/** Docker driver options with every default filled in. */
export interface ResolvedDockerOptions {
  readonly image: string
  readonly guest: WorkerGuest
  readonly installId: string
  readonly user: WorkerUser
  readonly engineSocket: string
  readonly limits: ResolvedLimits
  readonly network: WorkerNetwork
  readonly runtime: WorkerRuntime | undefined
  scrub(text: string): string
}

/** Checks the options and fills in the defaults. Throws `options_invalid` naming the field. */
export function resolveDockerOptions(options: DockerDriverOptions): ResolvedDockerOptions {
  checkedObject('options', options)
  if (options.limits !== undefined) checkedObject('limits', options.limits)
  checkedFunction('scrub', options.scrub)
  return {
    image: checkedImage('image', options.image),
    guest: checkedGuest(options.guest),
    installId: checkedInstallId(options.installId),
    user: checkedUser(options.user),
    engineSocket: checkedSocket(options.engineSocket),
    limits: limitsFor(options),
    network: checkedNetwork(options.network, options.guest),
    runtime: options.runtime === undefined ? undefined : checkedRuntime(options.runtime),
    scrub: options.scrub ? (text) => options.scrub?.(text) ?? '' : (text) => text,
  }
}

/** Checks which guest is wanted. */
export function checkedGuest(guest: WorkerGuest = 'sealed'): WorkerGuest {
  const known = typeof guest === 'string' && Object.hasOwn(GUEST_LIMITS, guest)
  if (!known) invalid('guest', 'has to be "sealed", "pi" or "precheck"')
  return guest
}

/** The Pi agent reaches the host through a port of its own container; a script through its socket alone. */
function checkedNetwork(network: WorkerNetwork | undefined, guest: WorkerGuest | undefined): WorkerNetwork {
  const found = network === undefined ? (guest === 'pi' ? 'loopback' : 'none') : network
  if (found !== 'none' && found !== 'loopback') invalid('network', 'has to be "none" or "loopback"')
  if (found === 'none' && guest === 'pi') invalid('network', 'has to be "loopback" for the guest "pi"')
  if (found !== 'none' && guest === 'precheck')
    invalid('network', 'has to be "none" for the guest "precheck"')
  return found
}

/** Checks the name of a runtime. */
export function checkedRuntime(runtime: string, field = 'runtime'): WorkerRuntime {
  if (runtime === 'runc' || runtime === 'runsc' || runtime === 'kata') return runtime
  return invalid(field, 'has to be "runc", "runsc" or "kata"')
}

/** The limits of a worker of this guest and runtime, with room for the runtime's own threads. */
function limitsFor({ guest = 'sealed', runtime, limits }: DockerDriverOptions): ResolvedLimits {
  const own = GUEST_LIMITS[guest]
  if (runtime !== 'runsc') return resolveLimits({ ...own, ...limits })
  const { pids = GVISOR_PIDS } = own
  return resolveLimits({ ...own, pids: Math.max(pids, GVISOR_PIDS), ...limits }, GVISOR_PIDS)
}

/** Checks what holds other fields: anything else would silently be taken for its defaults. */
export function checkedObject(field: string, value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    invalid(field, 'has to be an object')
  }
}

/** Checks a callback, which may be left out. */
export function checkedFunction(field: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') invalid(field, 'has to be a function')
}

/** Checks the path of a program or a directory that may be a link, and may be left out. */
export function checkedProgram(field: string, path: string | undefined): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the purpose
  const plain = typeof path === 'string' && path !== '' && !/[\u0000-\u001f\u007f]/.test(path)
  if (path !== undefined && (!plain || Buffer.byteLength(path) > 4096)) {
    invalid(field, 'has to be a path of at most 4096 bytes without control characters')
  }
}

/** Checks an install id. */
export function checkedInstallId(installId: string): string {
  if (typeof installId !== 'string' || !INSTALL_ID.test(installId)) {
    invalid('installId', 'has to be 8 to 128 characters of A-Z a-z 0-9 _ . -')
  }
  return installId
}

/** Fills in the limits' defaults. Throws `options_invalid` naming the field. */
export function resolveLimits(limits: WorkerLimits = {}, leastPids = 8): ResolvedLimits {
  const { memoryBytes = 512 * MIB, cpus = 1, pids = Math.max(64, leastPids) } = limits
  const { openFiles = 256, fileBytes = 64 * MIB, tmpBytes = 64 * MIB } = limits
  return {
    memoryBytes: bounded('limits.memoryBytes', memoryBytes, 64 * MIB, 2 ** 50),
    cpus: bounded('limits.cpus', cpus, 0.01, 4096, false),
    pids: bounded('limits.pids', pids, leastPids, 1_000_000),
    openFiles: bounded('limits.openFiles', openFiles, 32, 1_000_000),
    fileBytes: bounded('limits.fileBytes', fileBytes, MIB, 2 ** 50),
    tmpBytes: bounded('limits.tmpBytes', tmpBytes, MIB, 2 ** 50),
  }
}

/** Checks a uid and a gid: whole numbers above 0, since a worker never runs as root. */
export function checkedUser(user: WorkerUser): WorkerUser {
  for (const field of ['uid', 'gid'] as const) {
    const id = user?.[field]
    if (!Number.isInteger(id) || id <= 0) {
      invalid(`user.${field}`, 'has to be a whole number above 0: a worker never runs as root')
    }
    if (id > MAX_ID) invalid(`user.${field}`, `has to be a number of an account, ${MAX_ID} at most`)
  }
  return { uid: user.uid, gid: user.gid }
}

/** Checks an image name. */
export function checkedImage(field: string, image: string): string {
  if (typeof image !== 'string' || !IMAGE.test(image)) invalid(field, 'is not the name of an image')
  return image
}

/** The engine socket that was given, else that of the environment. */
export function checkedSocket(given: string | undefined): string {
  if (given === undefined) return engineSocketPath(process.env)
  return checkedNoLink(
    'options_invalid',
    'engineSocket',
    checkedPath('options_invalid', 'engineSocket', given),
  )
}

/** Checks a path: absolute, normal, not `/`, nothing in it that a mount option could be made of. */
export function checkedPath(code: DriverErrorCode, field: string, path: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the purpose
  const plain = typeof path === 'string' && isAbsolute(path) && !/[\u0000-\u001f\u007f,]/.test(path)
  if (!plain || resolve(path) === sep || normalize(path) !== path || Buffer.byteLength(path) > 4096) {
    invalid(field, 'has to be an absolute path below /, without "..", commas or control characters', code)
  }
  return path
}

/**
 * Refuses a path whose last part is a link: somebody else could lead it elsewhere. One that is not there passes.
 *
 * A plain `lstatSync` of a socket makes Node 22 take later links for real paths (its `realpathSync` reads what the last
 * plain stat left), so that a later `import()` finds no dependencies; one with `bigint` does not.
 */
export function checkedNoLink(code: DriverErrorCode, field: string, path: string): string {
  let link = false
  try {
    link = lstatSync(path, { bigint: true, throwIfNoEntry: false })?.isSymbolicLink() ?? false
  } catch {
    // What cannot be looked at is refused where it is used.
  }
  if (link) invalid(field, `is a link (${path}): give the path that it leads to`, code)
  return path
}

/** Checks a worker's spec before anything is begun. Throws `spec_invalid` naming the field. */
export function checkWorkerSpec(spec: WorkerSpec): void {
  const bad = (field: string, rule: string) => invalid(`spec.${field}`, rule, 'spec_invalid')
  const fits = (value: unknown, rule: RegExp) => typeof value === 'string' && rule.test(value)
  if (!fits(spec.workerId, /^[0-9a-f]{16}$/)) bad('workerId', 'has to be 16 hexadecimal characters')
  if (!fits(spec.channelHash, /^[0-9a-f]{64}$/)) bad('channelHash', 'has to be 64 hexadecimal characters')
  if (!fits(spec.epoch, /^[A-Za-z0-9_.-]{1,64}$/))
    bad('epoch', 'has to be 1 to 64 characters of A-Z a-z 0-9 _ . -')
  for (const field of ['runDir', 'workspaceDir'] as const) {
    const path = checkedPath('spec_invalid', `spec.${field}`, spec[field])
    checkedNoLink('spec_invalid', `spec.${field}`, path)
  }
  checkApart(spec.runDir, spec.workspaceDir)
}

/** Refuses a workspace that holds the socket, or a run directory that holds the workspace. */
export function checkApart(runDir: string, workspaceDir: string): void {
  const inside = (inner: string, outer: string) => `${inner}/`.startsWith(`${outer}/`)
  if (inside(runDir, workspaceDir) || inside(workspaceDir, runDir)) {
    invalid('spec.workspaceDir', 'must not be spec.runDir, inside it or around it', 'spec_invalid')
  }
}

function bounded(field: string, value: number, min: number, max: number, whole = true): number {
  if (typeof value !== 'number' || !(value >= min && value <= max) || (whole && !Number.isInteger(value))) {
    invalid(field, `has to be a ${whole ? 'whole ' : ''}number from ${min} to ${max}`)
  }
  return value
}

function invalid(field: string, rule: string, code: DriverErrorCode = 'options_invalid'): never {
  throw new DriverError(code, `${field} ${rule}.`)
}
