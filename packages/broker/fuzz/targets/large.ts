import { isDeepStrictEqual } from 'node:util'
import { atOnce, PIECE_BYTES } from '../../src/engine/call/in-pieces.ts'
import { bytesCarry } from '../../src/engine/reflection/scan-json.ts'
import { largeValue } from '../../src/engine/stream/large-value.ts'
import { anyValue } from '../corpus.ts'
import { jsonText } from '../json-text.ts'
import type { Random } from '../random.ts'
import { matcherOf, TOKENS } from '../secrets.ts'
import { type FuzzTarget, hold } from '../target.ts'

/** Text of several pieces: what is built of it, and what is found in it, does not depend on where it is cut. */
export const large: FuzzTarget = {
  name: 'large',
  about: 'texts of several pieces: the same value as JSON.parse makes, and a secret wherever it stands',
  run(random) {
    const token = random.pick(TOKENS)
    const planted = random.once(2)
    const unit = spelt(random, `${random.text(8)}x`)
    const secret = planted ? spelt(random, token) : ''
    const lead = unit.repeat(Math.ceil((PIECE_BYTES - 200 + random.below(400)) / unit.length))
    const tail = unit.repeat(Math.ceil(random.below(PIECE_BYTES) / unit.length))
    const [first, last] = [0, 1].map(() => jsonText(random, anyValue(random, 3), false))
    const text = `{"a":${first},"b":["${lead}${secret}${tail}"],"c":${last}}`
    const bytes = Buffer.from(text)
    const shown = { unit, secret, lead: lead.length, tail: tail.length, first, last }
    hold(bytesCarry(bytes, matcherOf(token)) === planted, 'found or not', shown)
    hold(isDeepStrictEqual(built(bytes, shown), JSON.parse(text)), 'another value', shown)
  },
}

/** The text between the quotes of a JSON string, in one of its many ways. */
function spelt(random: Random, text: string): string {
  return jsonText(random, text, false).trim().slice(1, -1)
}

function built(bytes: Uint8Array, shown: object): unknown {
  try {
    // With the prototypes that JSON.parse gives.
    return JSON.parse(JSON.stringify(atOnce(largeValue(bytes))))
  } catch (error) {
    return hold(false, `refused: ${error}`, shown)
  }
}
