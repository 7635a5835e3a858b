import { BrokerError } from '@sandbox/broker'
import { exitFailure, type Worker } from '@sandbox/docker-worker'
import { WorkerEnded } from '../runtime/turn-failure.ts'
import type { PrecheckStep } from './precheck-run.ts'

/** How a run failed: words for the model that is woken, and whose fault it was. */
export interface PrecheckFailure {
  readonly words: string
  /** Something of the host's is out of order: for an error line. */
  readonly ours: boolean
}

const BY_CODE: Readonly<Record<string, string>> = {
  worker_out_of_memory: 'The script used more memory than it may.',
  worker_pid_limit: 'The script made more processes or threads than it may.',
  worker_lost: 'The engine went away while the script ran.',
}

/** Why there is no outcome, from the step that rejected. Every word is the host's. */
export async function precheckFailure(
  error: unknown,
  step: PrecheckStep,
  worker: Worker | undefined,
): Promise<PrecheckFailure> {
  if (step === 'wait') return { words: 'Too many scripts run already: this one was not begun.', ours: true }
  if (step === 'grant') return { words: 'The tools of this schedule could not be granted.', ours: true }
  if (step === 'deliver' && BrokerError.isInstance(error) && error.code === 'second_hello') {
    return { words: 'The script spoke to the host in the place of its worker.', ours: false }
  }
  if (step !== 'deliver') return { words: 'No safe place to run the script could be started.', ours: true }
  if (!(error instanceof WorkerEnded) || worker === undefined) {
    return { words: 'The script could not be run.', ours: true }
  }
  const code = exitFailure(await worker.exited, { output: worker.output() })?.code ?? ''
  return { words: BY_CODE[code] ?? 'The script ended its process before it had answered.', ours: false }
}
