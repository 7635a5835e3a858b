import { isDeepStrictEqual } from 'node:util'
import { EventReader, type ServerEvent } from '../../src/engine/stream/event-reader.ts'
import type { Random } from '../random.ts'
import { type FuzzTarget, hold } from '../target.ts'

const LINES = [
  ...['data: {"a":1}', 'data:x', 'data', 'data: ', 'data:  two', 'event: message_start', 'event:', 'event'],
  ...[': comment', ':', 'id: 1', 'retry: 10', 'data: 日本語 🎉', 'datax: 1', ' data: 1', 'data: [DONE]', ''],
]

/** Our reader against the standard's own words, and one cutting into pieces against another. */
export const events: FuzzTarget = {
  name: 'events',
  about: 'server-sent events in any pieces, against a reader that sees the whole text',
  run(random) {
    const bytes = random.mutated(Buffer.from(stream(random)))
    const whole = standard(bytes)
    for (let round = 0; round < 2; round += 1) {
      const got = read(random.pieces(bytes))
      hold(isDeepStrictEqual(got.map(meaning), whole), 'other events', {
        bytes: latin(bytes),
        got: got.map(meaning),
        whole,
      })
      // What is passed on means the same to whoever reads it.
      const again = standard(Buffer.concat(got.map((event) => event.bytes)))
      hold(isDeepStrictEqual(again, whole), 'passed on with another meaning', {
        bytes: latin(bytes),
        again,
        whole,
      })
    }
  },
}

const latin = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')
const meaning = ({ type, data }: ServerEvent) => ({
  type,
  data: new TextDecoder('utf-8', { ignoreBOM: true }).decode(data),
})

function stream(random: Random): string {
  const mark = random.once(6) ? '\ufeff' : ''
  return (
    mark +
    random.list(12, () => random.pick(LINES) + random.pick(['\n', '\n', '\r\n', '\r', '\n\n'])).join('')
  )
}

function read(pieces: readonly Uint8Array[]): ServerEvent[] {
  const reader = new EventReader({ eventBytes: 1 << 20 })
  return pieces.flatMap((piece) => {
    const found = reader.push(piece)
    // Whoever owns the memory writes over it.
    piece.fill(0x58)
    return found
  })
}

/** WHATWG HTML, section 9.2.6, word by word. */
function standard(bytes: Uint8Array): { type: string; data: string }[] {
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes).replace(/^\ufeff/, '')
  const lines = text.split(/\r\n|\r|\n/)
  lines.pop()
  const found: { type: string; data: string }[] = []
  let data: string[] = []
  let type = ''
  for (const line of lines) {
    if (line === '') {
      if (data.length > 0) found.push({ type, data: data.join('\n') })
      data = []
      type = ''
      continue
    }
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'data') data.push(value)
    if (name === 'event') type = value
  }
  return found
}
