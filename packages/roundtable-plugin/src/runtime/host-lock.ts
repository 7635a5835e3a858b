import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxPluginError } from '../errors.ts'

/**
 * Takes a directory for this process alone and returns what gives it back. A mark names its process by pid,
 * start time and boot, so a mark that outlived its process is seen and removed. Each host makes its own mark
 * first and looks for others then: two that start at once may both be refused, but never both run.
 *
 * @throws SandboxPluginError `run_root_locked`
 */
export function lockForThisHost(directory: string): () => void {
  const own = markName(process.pid)
  const path = join(directory, own)
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') throw locked(directory, process.pid)
    throw cause
  }
  const unlock = () => rmSync(path, { force: true })
  for (const name of readdirSync(directory)) {
    const pid = name === own ? undefined : markedPid(name)
    if (pid === undefined) continue
    if (markName(pid) === name) {
      unlock()
      throw locked(directory, pid)
    }
    rmSync(join(directory, name), { force: true })
  }
  return unlock
}

function locked(directory: string, pid: number): SandboxPluginError {
  return new SandboxPluginError(
    'run_root_locked',
    `The run root ${directory} is used by another host (process ${pid}). Stop that host, or give this one a run root of its own.`,
  )
}

function markedPid(name: string): number | undefined {
  const match = /^host\.(\d+)\.[\w-]+\.[\w-]+\.lock$/.exec(name)
  return match === null ? undefined : Number(match[1])
}

/** The mark of a running process; a name that nothing bears for one that is gone. */
function markName(pid: number): string {
  return `host.${pid}.${startTime(pid)}.${bootId()}.lock`
}

function startTime(pid: number): string {
  try {
    // proc(5), /proc/pid/stat: field 22, counted after the last parenthesis of the command name (field 2).
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? 'gone'
  } catch {
    return existsSync('/proc/self/stat') ? 'gone' : startTimeElsewhere(pid)
  }
}

/** Without `/proc` the pid has to do. */
function startTimeElsewhere(pid: number): string {
  try {
    process.kill(pid, 0)
    return 'unknown'
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === 'EPERM' ? 'unknown' : 'gone'
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return 'unknown'
  }
}
