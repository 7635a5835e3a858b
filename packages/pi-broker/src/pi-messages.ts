import { BrokerError, type DeskMessages, PassedAnswer } from '@sandbox/broker/engine'
import {
  atOnce,
  limits,
  type Pieces,
  type PiOutcome,
  type PiTurn,
  PROTOCOL_VERSION,
  piResultPieces,
  piTurnPieces,
  readPiResult,
} from '@sandbox/protocol'

/** A Pi turn as the host hands it to the desk; the desk adds `protocol` and `remainingMs` when it is fetched. */
export type PiDeskTurn = Omit<PiTurn, 'remainingMs' | 'protocol'>

type Delivered = PiDeskTurn & Pick<PiTurn, 'protocol' | 'remainingMs'>

/** What a Pi worker is handed, and what it hands in. */
export const piMessages: DeskMessages<PiDeskTurn, PiOutcome> = {
  mode: 'pi',
  resultBytes: limits.PI_RESULT_BYTES,
  checked: (turn) => atOnce(checkedTurn(turn)),
  checkedPieces: checkedTurn,
  readResult: readPiResult,
  resultPieces: piResultPieces,
  written,
}

/** W-52: what the worker would refuse is refused here. */
function* checkedTurn(turn: PiDeskTurn): Pieces<PiDeskTurn> {
  const { prompt, memory, images } = turn
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
    // Long strings are not cloned: they cannot change.
    images: Array.isArray(images) ? images.map((image) => ({ ...image })) : images,
    mcp: structuredClone(turn.mcp),
  }
  const problem = yield* piTurnPieces({ ...copy, protocol: PROTOCOL_VERSION, remainingMs: 0 })
  if (problem !== undefined) throw new BrokerError('turn_invalid', problem)
  const rest = Buffer.byteLength(JSON.stringify({ ...copy, images: [] })) + ROOM_BYTES
  if (rest + imageChars(copy) > limits.PI_TURN_BYTES) {
    throw new BrokerError('turn_invalid', `The turn is over ${limits.PI_TURN_BYTES} bytes as JSON.`)
  }
  return copy
}

/** For what stands around the images, and for what the desk adds. */
const ROOM_BYTES = 1024
/** Beyond this a turn's images are written piece by piece. */
const SMALL_CHARS = 256 * 1024
const PIECE_CHARS = 256 * 1024

function imageChars({ images }: PiDeskTurn): number {
  return images.reduce((sum, { data }) => sum + data.length, 0)
}

/** The same JSON, but of large images not in one go. */
function written(turn: Delivered): unknown {
  if (imageChars(turn) <= SMALL_CHARS) return turn
  return new PassedAnswer({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: { reason: 'ok', [Symbol.asyncIterator]: () => turnPieces(turn) },
  })
}

/** Base64 has no letter that JSON would write otherwise. */
async function* turnPieces({ images, ...rest }: Delivered): AsyncGenerator<Uint8Array> {
  yield Buffer.from(`${JSON.stringify(rest).slice(0, -1)},"images":[`)
  for (const [index, { mimeType, data }] of images.entries()) {
    yield Buffer.from(`${index === 0 ? '' : ','}{"mimeType":${JSON.stringify(mimeType)},"data":"`)
    for (let at = 0; at < data.length; at += PIECE_CHARS) {
      yield Buffer.from(data.slice(at, at + PIECE_CHARS), 'latin1')
    }
    yield Buffer.from('"}')
  }
  yield Buffer.from(']}')
}
