import { DriverError } from '../../errors.ts'
import type { WorkerExit } from '../driver.ts'

/** What a host knows of a worker's end besides the exit. */
export interface ExitContext {
  /** The worker's output, for evidence and for a hint; never for a decision between success and failure. */
  readonly output?: string
  /** Set when the host removed it because this many milliseconds were over. */
  readonly deadlineMs?: number
}

/** What C libraries, shells and runtimes write when a process or thread cannot be made. */
const NO_PROCESS = /EAGAIN|Resource temporarily unavailable|can't fork|pthread_create/i

/**
 * Turns the end of a worker into the error that it is, with what to do; `undefined` for a good end. Pure. `cause` is
 * the exit, `output` stays with the caller.
 */
export function exitFailure(exit: WorkerExit, context: ExitContext = {}): DriverError | undefined {
  const fail = (code: DriverError['code'], text: string) => new DriverError(code, text, { cause: exit })
  if (exit.reason === 'oom') {
    return fail(
      'worker_out_of_memory',
      'The worker met its memory limit. Raise limits.memoryBytes, or do less.',
    )
  }
  if (exit.limit === 'pids') return fail('worker_pid_limit', PIDS)
  if (context.deadlineMs !== undefined) {
    const text = `The worker was not done within ${context.deadlineMs} ms and was removed. Give it more time, or less to do.`
    return fail('worker_deadline', text)
  }
  if (exit.reason === 'lost') {
    const text = 'Nobody knows how the worker ended: the engine went away. Look whether it runs, then sweep.'
    return fail('worker_lost', text)
  }
  if (exit.limit === 'memory_likely') {
    const text =
      'The worker was killed, and not by this host: likely memory, though the engine did not say so. ' +
      'Raise limits.memoryBytes; look at the kernel log with "dmesg".'
    return fail('worker_out_of_memory', text)
  }
  if (exit.reason === 'killed') {
    return fail(
      'worker_killed',
      `The worker was ended by ${exit.signal ?? 'a signal'}. Its output may say why.`,
    )
  }
  if (exit.code === 0) return undefined
  if (NO_PROCESS.test(context.output ?? '')) return fail('worker_pid_limit', `${PIDS} Its output says so.`)
  const code = exit.code === undefined ? '' : ` with exit code ${exit.code}`
  return fail('worker_failed', `The worker ended${code}. Its output may say why.`)
}

const PIDS = 'The worker could not make another process or thread. Raise limits.pids, or start fewer.'
