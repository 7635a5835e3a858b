import { CallRefusal } from '../../src/engine/call/refusal.ts'
import { EventReader } from '../../src/engine/stream/event-reader.ts'
import { EventScanner } from '../../src/engine/stream/event-scanner.ts'
import { anthropicMessages } from '../../src/engine/wire/anthropic.ts'
import type { WireFamily } from '../../src/engine/wire/family.ts'
import { openAiChat } from '../../src/engine/wire/openai-chat.ts'
import { openAiResponses } from '../../src/engine/wire/openai-responses.ts'
import { jsonText } from '../json-text.ts'
import type { Random } from '../random.ts'
import { matcherOf, spelled, TOKENS } from '../secrets.ts'
import { type FuzzTarget, hold } from '../target.ts'

/** A dialect: how a piece of a block travels, and what a client makes of it. */
interface Dialect {
  readonly family: WireFamily
  event(piece: string, block: number): object
  pieceOf(event: Record<string, never>): string
}

// biome-ignore lint/suspicious/noExplicitAny: clients reach into what they get.
type Any = any

const DIALECTS: readonly Dialect[] = [
  {
    family: openAiChat,
    event: (content, index) => ({ choices: [{ index, delta: { content } }] }),
    pieceOf: (event: Any) => event.choices?.[0]?.delta?.content ?? '',
  },
  {
    family: openAiChat,
    event: (piece, index) => ({
      choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: piece } }] } }],
    }),
    pieceOf: (event: Any) => event.choices?.[0]?.delta?.tool_calls?.[0]?.function?.arguments ?? '',
  },
  {
    family: openAiResponses,
    event: (delta, index) => ({
      type: 'response.output_text.delta',
      item_id: 'm',
      output_index: index,
      delta,
    }),
    pieceOf: (event: Any) => event.delta ?? '',
  },
  {
    family: anthropicMessages,
    event: (text, index) => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } }),
    pieceOf: (event: Any) => event.delta?.text ?? '',
  },
]

/** A secret spelled out over deltas of one block, with other blocks in between. */
export const eventScan: FuzzTarget = {
  name: 'event-scan',
  about: 'streams that spell a secret out, or not: none of it gets through, all else does',
  run(random) {
    const dialect = random.pick(DIALECTS)
    const token = random.pick(TOKENS)
    const planted = random.once(2)
    const { events, sent } = stream(random, dialect, planted ? spelled(random, token) : undefined)
    const { out, hit } = scan(dialect.family, token, events)
    const got = joined(dialect, out)
    if (!planted) {
      hold(!hit, 'a hit where there is no secret', events)
      hold(out.length === events.length && got === sent, 'not all of it went out', { events, out })
      return
    }
    hold(hit, 'a secret was not seen', { token, events })
    hold(!got.includes(token), 'a secret got through', { token, got })
  },
}

function stream(random: Random, dialect: Dialect, secret: string | undefined) {
  const safe = () => random.text(12).replaceAll('\\', '')
  const text = `${safe()}${secret ?? ''}${safe()}`
  const most = random.pick([1, 3, 10, 200])
  const events: string[] = []
  for (let at = 0; at < text.length; ) {
    const size = 1 + random.below(most)
    if (random.once(4)) events.push(jsonText(random, dialect.event(random.pick(['x', 'sk', ' ']), 1), false))
    events.push(jsonText(random, dialect.event(text.slice(at, at + size), 0), false))
    at += size
  }
  const oneLine = events.map((event) => event.replace(/[\r\n]/g, ' '))
  return { events: oneLine, sent: joined(dialect, oneLine) }
}

/** The first block, as a client puts it together. */
function joined(dialect: Dialect, events: readonly string[]): string {
  const isFirst = (event: Any) =>
    [event.output_index, event.index, event.choices?.[0]?.index === 0 ? 0 : 1].includes(0) &&
    event.choices?.[0]?.delta?.tool_calls?.[0]?.index !== 1
  const parsed = events.map((event) => JSON.parse(event)).filter(isFirst)
  return parsed.map((event) => dialect.pieceOf(event)).join('')
}

function scan(family: WireFamily, token: string, events: readonly string[]) {
  const matcher = matcherOf(token)
  const reader = new EventReader({ eventBytes: 1 << 20 })
  const follow = family.follow()
  const ignore = () => {}
  const scanner = new EventScanner({
    matcher,
    family: follow,
    usageAsked: true,
    onUsage: ignore,
    onCreated: ignore,
  })
  const out: string[] = []
  const pass = (blocks: readonly Uint8Array[]) => {
    for (const block of blocks) out.push(Buffer.from(block).toString().slice('data: '.length, -2))
  }
  try {
    for (const event of events) {
      for (const read of reader.push(Buffer.from(`data: ${event}\n\n`))) pass(scanner.push(read))
    }
    pass(scanner.release())
    return { out, hit: false }
  } catch (error) {
    hold(error instanceof CallRefusal && error.reason === 'reflection', `the scanner threw ${error}`, events)
    return { out, hit: true }
  }
}
