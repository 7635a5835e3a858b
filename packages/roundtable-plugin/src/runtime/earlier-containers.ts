import { closeSync, constants, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Driver, DriverError, engineSocketPath } from '@sandbox/docker-worker'
import type { HostLogger } from '../host-contract.ts'
import { describe } from './turn-failure.ts'

/** What {@link mindEarlierContainers} needs. */
export interface EarlierContainers {
  readonly runRoot: string
  readonly installId: string
  /** Makes a driver of either kind, for its sweep alone. */
  openContainers(engineSocket: string): Driver
  openProcesses(): Driver
  /** Default: what the environment says. */
  readonly engineSocket?: string
  readonly logger?: HostLogger
}

/**
 * Lets a driver sweep what an earlier host left that ran with the other one: nobody else would. That containers were
 * started is noted in the run root; plain processes have files there. Where no engine answers it says so, once, and tries again with every sweep.
 */
export function mindEarlierContainers(driver: Driver, where: EarlierContainers): Driver {
  const identity = driver.identity?.bind(driver)
  const plain: Driver = {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    start: (spec, signal) => driver.start(spec, signal),
    ...(identity && { identity }),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
  }
  return driver.kind === 'docker' ? noting(plain, where) : sweeping(plain, where)
}

/** Notes the engine before the first container of this host, and sweeps what an earlier one left in plain processes. */
function noting(driver: Driver, where: EarlierContainers): Driver {
  let noted = false
  return {
    ...driver,
    start: async (spec, signal) => {
      if (!noted) writeNote(where.runRoot, where.engineSocket ?? ownSocket() ?? '')
      noted = true
      return await driver.start(spec, signal)
    },
    sweep: async (live) => [...(await sweepProcesses(where, live)), ...(await driver.sweep(live))],
  }
}

async function sweepProcesses(
  { runRoot, openProcesses }: EarlierContainers,
  live: ReadonlySet<string>,
): Promise<readonly string[]> {
  const names = await readdir(join(runRoot, 'process', 'workers')).catch(() => [])
  if (names.length === 0) return []
  await using driver = openProcesses()
  return await driver.sweep(live)
}

/** Sweeps what containers an earlier host left, before the driver's own. */
function sweeping(driver: Driver, where: EarlierContainers): Driver {
  let told = false
  const earlier = async (live: ReadonlySet<string>): Promise<readonly string[]> => {
    const note = readNote(where.runRoot)
    if (note === undefined) return []
    try {
      const removed = await sweepContainers(where.openContainers(note), live)
      rmSync(noteOf(where.runRoot), { force: true })
      return removed
    } catch (error) {
      if (!DriverError.isInstance(error)) throw error
      if (!told) where.logger?.warn({ cause: describe(error), mend: mend(where) }, LEFT)
      told = true
      return []
    }
  }
  return { ...driver, sweep: async (live) => [...(await earlier(live)), ...(await driver.sweep(live))] }
}

const LEFT =
  'An earlier host ran in containers from this run root, and the engine cannot be asked: some of them may still run'

function mend({ installId }: EarlierContainers): string {
  return `Start the engine; they are removed within a minute, or with "sandbox-worker sweep --install ${installId}".`
}

async function sweepContainers(opened: Driver, live: ReadonlySet<string>): Promise<readonly string[]> {
  await using driver = opened
  return await driver.sweep(live)
}

function ownSocket(): string | undefined {
  try {
    return engineSocketPath(process.env)
  } catch {
    // A driver of the host's own may use another engine than the environment names.
    return undefined
  }
}

const noteOf = (runRoot: string) => join(runRoot, 'engine')

function writeNote(runRoot: string, socket: string): void {
  const path = noteOf(runRoot)
  rmSync(path, { force: true })
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeSync(file, `${socket}\n`)
  } finally {
    closeSync(file)
  }
}

/** The engine's socket as it was noted; the usual one where a note does not say. A pipe in its place blocks nothing. */
function readNote(runRoot: string): string | undefined {
  try {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    const file = openSync(noteOf(runRoot), flags)
    try {
      const bytes = Buffer.alloc(4096)
      const socket = bytes.toString('utf8', 0, readSync(file, bytes)).trim()
      return socket === '' ? '/var/run/docker.sock' : socket
    } finally {
      closeSync(file)
    }
  } catch {
    return undefined
  }
}
