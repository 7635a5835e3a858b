import { readdirSync, readFileSync } from 'node:fs'
import { START_FILE } from './places.ts'

/** A killed process is there until the kernel has given its memory back. */
const LONGEST_MS = 1_000
const PAUSE_MS = 2

/**
 * Kills what tools of a turn left running, so that it cannot go on in the next. In a container of ours everything but
 * the first process and this one is a leftover; elsewhere only what descends from this process is. False when something
 * is still there: the process must not take another turn.
 */
export function killLeftovers(): boolean {
  const everything = process.argv[1] === START_FILE
  const sleeper = new Int32Array(new SharedArrayBuffer(4))
  for (const end = performance.now() + LONGEST_MS; performance.now() < end; ) {
    // One by one, a process that forks and exits is always gone before its turn comes; the kernel takes all at once.
    if (everything) kill(-1)
    const parents = processParents()
    const left = [...parents.keys()].filter(
      (pid) => pid !== 1 && pid !== process.pid && (everything || descends(pid, parents)),
    )
    if (left.length === 0 || (!everything && left.filter(kill).length === 0)) return true
    Atomics.wait(sleeper, 0, 0, PAUSE_MS)
  }
  return false
}

function descends(pid: number, parents: ReadonlyMap<number, number>): boolean {
  for (let at = parents.get(pid); at !== undefined && at > 1; at = parents.get(at)) {
    if (at === process.pid) return true
  }
  return false
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}

/** Every process that is no zombie, with its parent: proc_pid_stat(5). */
function processParents(): ReadonlyMap<number, number> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return new Map(
    pids.flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        return state === 'Z' ? [] : [[Number(pid), Number(parent)] as const]
      } catch {
        return []
      }
    }),
  )
}
