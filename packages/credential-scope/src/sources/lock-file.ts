import { randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { CredentialError } from '../errors.ts'

/** Who holds a lock. */
interface Holder {
  /** Random, so that no two holds look alike. */
  readonly id: string
  readonly pid: number
  /** Where the pid means something: host, boot and pid namespace. */
  readonly place: string
  /** When the process started, so that a pid that was given to another process is noticed; empty = not known. */
  readonly started: string
}

const POLL_MS = 20

/**
 * Takes the lock that a file stands for, waiting while a live process holds it. Dispose of it to let go. The lock
 * of a process that is gone is taken over; that of a process elsewhere, whose life cannot be seen, is respected.
 *
 * @throws CredentialError `source_invalid` when it is not free within `waitMs`, or its directory cannot be used.
 */
export async function holdLock(path: string, waitMs: number): Promise<AsyncDisposable> {
  const own: Holder = {
    id: randomBytes(8).toString('hex'),
    pid: process.pid,
    place: place(),
    started: startOf(process.pid),
  }
  const until = performance.now() + waitMs
  while (!(await claim(path, own))) {
    const holder = await readHolder(path)
    if (holder !== undefined && isGone(holder) && (await bury(path, holder, own))) continue
    if (performance.now() >= until) throw busy(path, waitMs, holder)
    await sleep(POLL_MS * (0.5 + Math.random()))
  }
  return { [Symbol.asyncDispose]: () => rm(path, { force: true }) }
}

/** Makes the file with its whole content in one step, or does nothing when it is there. */
async function claim(path: string, own: Holder): Promise<boolean> {
  const draft = `${path}.${own.id}`
  try {
    await writeFile(draft, JSON.stringify(own), { flag: 'wx', mode: 0o600 })
    await link(draft, path)
    return true
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new CredentialError('source_invalid', `${path}: the lock cannot be made`, { cause })
  } finally {
    await rm(draft, { force: true })
  }
}

/**
 * Removes the lock of a holder that is gone. Who may do so is settled by a second lock, named after that very
 * holder: without it, a slow process could remove the lock that a quick one took over. `false` = somebody else is
 * at it.
 */
async function bury(path: string, gone: Holder, own: Holder): Promise<boolean> {
  const grave = `${path}.gone-${gone.id}`
  if (!(await claim(grave, own))) {
    const digger = await readHolder(grave)
    return digger !== undefined && isGone(digger) && bury(grave, digger, own)
  }
  try {
    if ((await readHolder(path))?.id === gone.id) await rm(path, { force: true })
  } finally {
    await rm(grave, { force: true })
  }
  return true
}

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    const { id, pid, place, started } = JSON.parse(await readFile(path, 'utf8'))
    return /^[0-9a-f]{16}$/.test(id) && Number.isSafeInteger(pid) ? { id, pid, place, started } : undefined
  } catch {
    return undefined
  }
}

function isGone(holder: Holder): boolean {
  if (holder.place !== place()) return isBeforeBoot(holder)
  try {
    process.kill(holder.pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
  return holder.started !== '' && holder.started !== startOf(holder.pid)
}

/** On this host, but before it was started anew: nothing of then is alive. */
function isBeforeBoot(holder: Holder): boolean {
  const [host, boot] = String(holder.place).split(' ')
  const [ownHost, ownBoot] = place().split(' ')
  return host === ownHost && boot !== ownBoot && boot !== '' && ownBoot !== ''
}

function place(): string {
  return `${hostname()} ${textOf(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim())} ${textOf(() => readlinkSync('/proc/self/ns/pid'))}`
}

/** Field 22 of proc_pid_stat(5), counted from behind the command's name, which may hold anything. */
function startOf(pid: number): string {
  return textOf(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''
  })
}

function textOf(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}

function busy(path: string, waitMs: number, holder: Holder | undefined): CredentialError {
  const who = holder === undefined ? 'somebody' : `process ${holder.pid}`
  return new CredentialError(
    'source_invalid',
    `${path}: ${who} has held this lock for ${waitMs} ms. When no such process runs on any host, remove the file.`,
  )
}
