import {
  isPrecheckJob,
  limits,
  PROTOCOL_VERSION,
  type PrecheckJob,
  type PrecheckOutcome,
  readPrecheckResult,
} from '@sandbox/protocol'
import { BrokerError } from '../engine/errors.ts'
import type { DeskMessages } from '../engine/turn/desk-messages.ts'

/** A run as the host hands it to the desk; the desk adds `protocol` and `remainingMs` when it is fetched. */
export type PrecheckRun = Omit<PrecheckJob, 'remainingMs' | 'protocol'>

/** What the worker of a precheck is handed, and what it hands in. */
export const precheckMessages: DeskMessages<PrecheckRun, PrecheckOutcome> = {
  mode: 'precheck',
  resultBytes: limits.PRECHECK_MESSAGE_BYTES,
  checked: checkedRun,
  readResult: readPrecheckResult,
}

/** W-93: before anything is started. */
function checkedRun({
  turnId,
  script,
  firedAt,
  timeZone,
  today,
  schedule,
  servers,
}: PrecheckRun): PrecheckRun {
  const copy: PrecheckRun = {
    turnId,
    script,
    firedAt,
    timeZone,
    today,
    schedule: { id: schedule?.id, title: schedule?.title },
    servers,
  }
  const whole = { ...copy, protocol: PROTOCOL_VERSION, remainingMs: Number.MAX_SAFE_INTEGER }
  if (!isPrecheckJob(whole)) throw new BrokerError('turn_invalid', 'The run has a wrong or missing field.')
  if (Buffer.byteLength(JSON.stringify(whole)) > limits.PRECHECK_MESSAGE_BYTES) {
    throw new BrokerError('turn_invalid', `The run is over ${limits.PRECHECK_MESSAGE_BYTES} bytes as JSON.`)
  }
  return structuredClone(copy)
}
