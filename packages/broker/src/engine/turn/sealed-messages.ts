import {
  isSealedTurn,
  limits,
  PROTOCOL_VERSION,
  readSealedResult,
  type SealedOutcome,
  type SealedTurn,
} from '@sandbox/protocol'
import { BrokerError } from '../errors.ts'
import type { DeskMessages } from './desk-messages.ts'

/** A turn as the host hands it to the desk; the desk adds `protocol` and `remainingMs` when it is fetched. */
export type DeskTurn = Omit<SealedTurn, 'remainingMs' | 'protocol'>

/** What a sealed worker is handed, and what it hands in. */
export const sealedMessages: DeskMessages<DeskTurn, SealedOutcome> = {
  mode: 'sealed',
  resultBytes: limits.SEALED_RESULT_BYTES,
  checked: checkedTurn,
  readResult: readSealedResult,
}

function checkedTurn(turn: DeskTurn): DeskTurn {
  const { turnId, nonce, text, speaker, model, prompt, timeZone, reset, tools, mcp } = turn
  const copy: DeskTurn = {
    turnId,
    nonce,
    text,
    speaker: { id: speaker?.id, name: speaker?.name },
    model,
    ...(prompt === undefined ? {} : { prompt }),
    timeZone,
    reset,
    tools,
    mcp,
  }
  const whole = { ...copy, protocol: PROTOCOL_VERSION, remainingMs: Number.MAX_SAFE_INTEGER }
  if (!isSealedTurn(whole)) throw new BrokerError('turn_invalid', 'The turn has a wrong or missing field.')
  const json = JSON.stringify(whole)
  if (Buffer.byteLength(json) > limits.SEALED_TURN_BYTES) {
    throw new BrokerError('turn_invalid', `The turn is over ${limits.SEALED_TURN_BYTES} bytes as JSON.`)
  }
  return JSON.parse(JSON.stringify(copy)) as DeskTurn
}
