import { BrokerError, type DeskMessages } from '@sandbox/broker/engine'
import {
  limits,
  type PiOutcome,
  type PiTurn,
  PROTOCOL_VERSION,
  piResultPieces,
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
  resultPieces: piResultPieces,
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
    attachments: structuredClone(turn.attachments),
    // Long strings: not cloned, since they cannot change.
    images: Array.isArray(turn.images) ? turn.images.map(({ mimeType, data }) => ({ mimeType, data })) : [],
    mcp: structuredClone(turn.mcp),
  }
  const problem = piTurnProblem({ ...copy, protocol: PROTOCOL_VERSION, remainingMs: 0 })
  if (problem !== undefined) throw new BrokerError('turn_invalid', problem)
  const bytes = copy.images.reduce(
    (size, { data }) => size + data.length,
    Buffer.byteLength(JSON.stringify({ ...copy, images: [] })) + 1024,
  )
  if (bytes > limits.PI_TURN_BYTES) {
    throw new BrokerError('turn_invalid', `The turn is over ${limits.PI_TURN_BYTES} bytes as JSON.`)
  }
  return copy
}
