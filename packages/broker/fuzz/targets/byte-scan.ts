import type { Random } from '../random.ts'
import { encoded, matcherOf, spelled, TOKENS } from '../secrets.ts'
import { type FuzzTarget, hold } from '../target.ts'

/** The scanner of bytes: a stream in pieces against the whole. */
export const byteScan: FuzzTarget = {
  name: 'byte-scan',
  about: 'the scanner of bytes: in pieces as in one, and never the whole secret',
  run(random) {
    const token = random.pick(TOKENS)
    const matcher = matcherOf(token)
    const planted = random.once(2)
    const bytes = made(random, planted ? token : undefined)
    const scan = matcher.stream(random.once(2) ? {} : { holdFromBytes: 8 })
    const out: Uint8Array[] = []
    for (const piece of random.pieces(bytes)) {
      out.push(Uint8Array.from(scan.push(piece)))
      piece.fill(0x58)
    }
    out.push(scan.end())
    const passed = Buffer.concat(out)
    hold(scan.hit === matcher.matchesBytes(bytes), 'in pieces it is another answer than in one', {
      bytes: latin(bytes),
      token,
    })
    hold(!planted || scan.hit, 'a secret was not seen', { bytes: latin(bytes), token })
    if (!scan.hit)
      hold(Buffer.compare(passed, bytes) === 0, 'other bytes came out', {
        bytes: latin(bytes),
        passed: latin(passed),
      })
    else hold(!matcher.matchesBytes(passed), 'a secret came out', { token, passed: latin(passed) })
  },
}

const latin = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

function made(random: Random, token: string | undefined): Uint8Array {
  const noise = () => (random.once(3) ? random.pick(TOKENS).slice(0, random.below(12)) : random.text(20))
  const secret = () => (random.once(2) ? spelled(random, token as string) : encoded(random, token as string))
  const parts = [`${noise()} `, token === undefined ? '' : secret(), ` ${noise()}`]
  return Buffer.concat(parts.map((part) => Buffer.from(part as string)))
}
