import { bytesCarry, carriesSecret, MOST_LEVELS } from '../../src/engine/reflection/scan-json.ts'
import { corpus } from '../corpus.ts'
import type { Random } from '../random.ts'
import { matcherOf, TOKENS } from '../secrets.ts'
import { type FuzzTarget, hold } from '../target.ts'

const seeds = corpus('json').filter((value) => typeof value === 'string')

/** The search of JSON, where escapes hide what they like below other escapes. */
export const jsonScan: FuzzTarget = {
  name: 'json-scan',
  about: 'the search of JSON: a secret below any escapes is found, and no text costs more than its bound',
  run(random) {
    const token = random.pick(TOKENS)
    const matcher = matcherOf(token)
    const planted = random.once(2)
    let text = planted ? token : random.text(12)
    for (let levels = random.below(6); levels > 0; levels -= 1) text = wrapped(random, text)
    const value = { [random.text(3)]: [random.once(2) ? text : { [text]: 1 }] }
    let searches = 0
    const counting = {
      matchesBytes: (bytes: Uint8Array) => {
        searches += 1
        return matcher.matchesBytes(bytes)
      },
    }
    const hits = [carriesSecret(value, counting), bytesCarry(Buffer.from(JSON.stringify(value)), counting)]
    hold(searches <= 2 * (MOST_LEVELS + 1), 'too many searches', { searches, text })
    hold(!planted || hits.every(Boolean), 'a secret was not seen', { hits, text })
  },
}

/** One more level of escapes, with others beside it. */
function wrapped(random: Random, text: string): string {
  const inner = [...text].map((char) => (random.once(8) ? unicode(char) : JSON.stringify(char).slice(1, -1)))
  const chain = random.once(4) ? `\\${'u005c'.repeat(random.below(40))}` : ''
  return `${random.once(3) ? random.pick(seeds) : ''}${chain} ${inner.join('')} ${'\\'.repeat(random.below(20) * 2)}`
}

function unicode(char: string): string {
  const units = Array.from({ length: char.length }, (_, at) => char.charCodeAt(at))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}
