import { BrokerError, type DeskMessages } from '@sandbox/broker/engine'
import {
  limits,
  type PiOutcome,
  type PiTurn,
  PROTOCOL_VERSION,
  piTurnProblem,
  readPiResult,
} from '@sandbox/protocol'

/** A Pi turn as the host hands it to the desk; the desk adds `protocol` and `remainingMs` when it is fetched. */
export type PiDeskTurn = Omit<PiTurn, 'remainingMs' | 'protocol'>

/** What a Pi worker is handed, and what it hands in. */
export const piMessages: DeskMessages<PiDeskTurn, PiOutcome> = {
  mode: 'pi',
  resultBytes: limits.PI_RESULT_BYTES,
  checked: checkedTurn,
  readResult: readPiResult,
}

/** W-52: what the worker would refuse is refused here. */
function checkedTurn(turn: PiDeskTurn): PiDeskTurn {
  const { prompt, memory } = turn
  const copy: PiDeskTurn = {
    turnId: turn.turnId,
    nonce: turn.nonce,
    text: turn.text,
    speaker: { id: turn.speaker?.id, name: turn.speaker?.name },
    profile: turn.profile,
    thinking: turn.thinking,
    model: turn.model,
    timeZone: turn.timeZone,
    ...(prompt === undefined ? {} : { prompt }),
    ...(memory === undefined ? {} : { memory }),
    attachments: copies(turn.attachments),
    images: copies(turn.images),
    mcp: copies(turn.mcp),
  }
  const problem = piTurnProblem({ ...copy, protocol: PROTOCOL_VERSION, remainingMs: 0 })
  if (problem !== undefined) throw new BrokerError('turn_invalid', problem)
  const bytes = Buffer.byteLength(JSON.stringify(copy))
  if (bytes > limits.PI_TURN_BYTES) {
    throw new BrokerError('turn_invalid', `The turn is over ${limits.PI_TURN_BYTES} bytes as JSON.`)
  }
  return copy
}

/** Later changes of the caller's lists do not reach the turn. Strings, which may be long, are not copied. */
function copies<T>(list: readonly T[]): T[] {
  return structuredClone(list) as T[]
}
