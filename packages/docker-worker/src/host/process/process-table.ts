import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { DriverError } from '../../errors.ts'

/** What names a process for ever: its number can be given away again, its start cannot. */
export interface ProcessMark {
  readonly pid: number
  /** Clock ticks since boot, from `/proc/PID/stat`. */
  readonly startTime: string
  readonly bootId: string
}

interface ProcessLine {
  readonly state: string
  readonly group: number
  readonly startTime: string
}

/** How long a killed group may take to vanish. */
const GONE_MS = 5_000

/** The mark of a running process; `undefined` when it is gone, or where there is no `/proc`. */
export function markProcess(pid: number): ProcessMark | undefined {
  const line = readLine(pid)
  const bootId = readBootId()
  return line && bootId !== undefined ? { pid, startTime: line.startTime, bootId } : undefined
}

/**
 * Kills the process group that a marked process leads or led, and waits until nobody of it runs. Does nothing when the
 * number was given to another process since. Rejects with `remove_failed`.
 */
export async function killMarkedGroup(mark: ProcessMark): Promise<void> {
  if (mark.bootId !== readBootId()) return
  const leader = readLine(mark.pid)
  // A number is not given away while a group of that number has members: without a leader, they are the old ones.
  if (leader && leader.startTime !== mark.startTime) return
  killGroup(mark.pid)
  await groupGone(mark.pid)
}

/** Sends SIGKILL to a process group. One that is gone is fine. */
export function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return
    throw new DriverError('remove_failed', `Process group ${group} cannot be killed.`, { cause: error })
  }
}

/** Resolves when no process of the group runs any more. Rejects with `remove_failed` after 5 s. */
export async function groupGone(group: number): Promise<void> {
  const end = performance.now() + GONE_MS
  while (groupRuns(group)) {
    if (performance.now() > end) {
      throw new DriverError('remove_failed', `Process group ${group} still runs after SIGKILL. Look at it.`)
    }
    await pause(10)
  }
}

/** True while a process of the group runs. One that is dead but not yet reaped does not run. */
function groupRuns(group: number): boolean {
  try {
    process.kill(-group, 0)
  } catch {
    return false
  }
  const pids = readProc('/proc') ?? []
  if (pids.length === 0) return true
  return pids.some((name) => {
    const line = /^\d+$/.test(name) ? readLine(Number(name)) : undefined
    return line !== undefined && line.group === group && line.state !== 'Z' && line.state !== 'X'
  })
}

function readProc(path: string): string[] | undefined {
  try {
    return readdirSync(path)
  } catch {
    return undefined
  }
}

/** Fields of `/proc/PID/stat` after the name, which is in brackets and may hold anything. See proc_pid_stat(5). */
function readLine(pid: number): ProcessLine | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const [state = '', , group = '', ...rest] = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return { state, group: Number(group), startTime: rest[16] ?? '' }
  } catch {
    return undefined
  }
}

function readBootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined
  }
}
