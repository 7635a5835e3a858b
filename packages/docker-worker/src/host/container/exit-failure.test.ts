import { expect, test } from 'vitest'
import type { WorkerExit } from '../driver.ts'
import { type ExitContext, exitFailure } from './exit-failure.ts'

const NO_FORK = { output: 'Error: spawn /sandbox/runtime EAGAIN' }

test.each<[string | undefined, WorkerExit, ExitContext?]>([
  [undefined, { code: 0, reason: 'exited' }],
  [undefined, { code: 0, reason: 'exited' }, NO_FORK],
  ['worker_failed', { code: 3, reason: 'exited' }],
  ['worker_failed', { reason: 'exited' }],
  ['worker_pid_limit', { code: 1, reason: 'exited' }, NO_FORK],
  ['worker_pid_limit', { code: 137, signal: 'SIGKILL', reason: 'killed', limit: 'pids' }, { deadlineMs: 5 }],
  ['worker_out_of_memory', { code: 137, signal: 'SIGKILL', reason: 'oom' }],
  ['worker_out_of_memory', { code: 0, reason: 'oom' }],
  ['worker_out_of_memory', { code: 137, signal: 'SIGKILL', reason: 'killed', limit: 'memory_likely' }],
  ['worker_deadline', { code: 137, signal: 'SIGKILL', reason: 'killed' }, { deadlineMs: 5 }],
  ['worker_deadline', { reason: 'lost' }, { deadlineMs: 5 }],
  ['worker_killed', { code: 143, signal: 'SIGTERM', reason: 'killed' }],
  ['worker_lost', { reason: 'lost' }],
])('T63 %s is what a worker died of: %j %j', (code, exit, context) => {
  const failure = exitFailure(exit, context)
  expect(failure?.code).toBe(code)
  if (failure) expect(failure).toMatchObject({ cause: exit, message: expect.stringMatching(/\. .+\.$/) })
})
