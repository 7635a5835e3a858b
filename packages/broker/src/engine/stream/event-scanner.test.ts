import { createSecretMatcher, Secret } from '@sandbox/credential-scope'
import { encodingsOf } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { inPieces, PIECE_BYTES } from '../call/in-pieces.ts'
import { anthropicMessages } from '../wire/anthropic.ts'
import type { WireFamily } from '../wire/family.ts'
import { openAiChat } from '../wire/openai-chat.ts'
import { openAiResponses } from '../wire/openai-responses.ts'
import { EventReader, type ServerEvent } from './event-reader.ts'
import { EventScanner } from './event-scanner.ts'

const TOKEN = 'sk-proj-0123456789+/=&"<abcdef>'
const MATCHER = createSecretMatcher([new Secret({ token: TOKEN, origin: 'https://api.example' })])

interface Passed {
  /** The texts that went out, event by event: how many events after each push. */
  readonly counts: number[]
  readonly out: string
  readonly hit: boolean
}

function freshScanner(family: WireFamily, usageAsked = true): EventScanner {
  const ignore = () => {}
  const hooks = { onUsage: ignore, onCreated: ignore }
  return new EventScanner({ matcher: MATCHER, family: family.follow(), usageAsked, ...hooks })
}

/** Pushes events, given as the objects in their data, and notes when what went out. */
function scan(family: WireFamily, events: readonly (object | string)[], usageAsked = true): Passed {
  const reader = new EventReader({ eventBytes: 1 << 20 })
  const scanner = freshScanner(family, usageAsked)
  const counts: number[] = []
  let out = ''
  for (const event of events) {
    const text = typeof event === 'string' ? event : JSON.stringify(event)
    try {
      for (const read of reader.push(Buffer.from(`data: ${text}\n\n`))) {
        const passed = scanner.push(read)
        counts.push(passed.length)
        out += Buffer.concat(passed).toString()
      }
    } catch (error) {
      expect(error).toMatchObject({ reason: 'reflection' })
      return { counts, out, hit: true }
    }
  }
  out += Buffer.concat(scanner.release()).toString()
  return { counts, out, hit: false }
}

const text = (content: string, index = 0) => ({ choices: [{ index, delta: { content } }] })
const args = (piece: string, index = 0) => ({
  choices: [{ index: 0, delta: { tool_calls: [{ index, function: { arguments: piece } }] } }],
})
const spelled = (whole: string, make: (piece: string) => object, step = 1) =>
  Array.from({ length: Math.ceil(whole.length / step) }, (_, at) =>
    make(whole.slice(at * step, at * step + step)),
  )

/** How a piece of text travels in each family, by kind. */
const KINDS: [name: string, family: WireFamily, make: (piece: string) => object, deeper: boolean][] = [
  ['chat text', openAiChat, text, false],
  [
    'chat reasoning',
    openAiChat,
    (piece) => ({ choices: [{ index: 0, delta: { reasoning_content: piece } }] }),
    false,
  ],
  ['chat arguments', openAiChat, args, true],
  // The official Python client strings together whatever is text, but for `type`.
  [
    'chat call ids',
    openAiChat,
    (id) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, id }] } }] }),
    false,
  ],
  [
    'responses text',
    openAiResponses,
    (delta) => ({
      type: 'response.output_text.delta',
      item_id: 'm',
      output_index: 0,
      content_index: 0,
      delta,
    }),
    false,
  ],
  [
    'responses arguments',
    openAiResponses,
    (delta) => ({ type: 'response.function_call_arguments.delta', item_id: 'f', output_index: 0, delta }),
    true,
  ],
  [
    'anthropic text',
    anthropicMessages,
    (piece) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: piece } }),
    false,
  ],
  [
    'anthropic thinking',
    anthropicMessages,
    (piece) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'thinking_delta', thinking: piece },
    }),
    false,
  ],
  [
    'anthropic arguments',
    anthropicMessages,
    (piece) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'input_json_delta', partial_json: piece },
    }),
    true,
  ],
]

describe('W-18 and T35 a secret that is spelled out [reflect:stopped]', () => {
  test.each(KINDS)('%s, in pieces of any size, before it is complete', (_, family, make) => {
    for (const step of [1, 2, 3, 17, 1000]) {
      const { hit, out } = scan(family, spelled(`well: ${TOKEN}!`, make, step))
      expect(hit, `step ${step}`).toBe(true)
      // Seven characters of it may be known by then, and the event that would have been the eighth is not out.
      expect(readable(out)).not.toContain(TOKEN.slice(0, 8))
    }
  })
  test.each(KINDS)('%s, in every encoding', (_, family, make) => {
    for (const [name, bytes] of encodingsOf(TOKEN)) {
      if (name === 'utf16le' || name.startsWith('base64')) continue
      expect(scan(family, spelled(bytes.toString('latin1'), make, 3)).hit, name).toBe(true)
    }
    for (const code of ['base64', 'base64url'] as const) {
      for (const before of ['', 'x', 'xx', 'Bearer ']) {
        const longer = Buffer.from(`${before}${TOKEN}, and so on`).toString(code)
        expect(scan(family, spelled(longer, make, 3)).hit, `${code} after ${before}`).toBe(true)
      }
    }
  })
  test.each(KINDS.filter(([, , , deeper]) => deeper))(
    'W-17 %s, escaped as JSON text writes it, one level deeper',
    (_, family, make) => {
      const mixed = [...TOKEN].map((char, at) =>
        at % 2 === 0
          ? `\\u00${char.charCodeAt(0).toString(16).padStart(2, '0')}`
          : JSON.stringify(char).slice(1, -1),
      )
      for (const step of [1, 2, 5, 7]) {
        expect(scan(family, spelled(`{"a":"${mixed.join('')}"}`, make, step)).hit).toBe(true)
      }
    },
  )
  test('blocks that take turns are followed apart', () => {
    const events = [...TOKEN].flatMap((char) => [text(char, 0), text('x', 1)])
    expect(scan(openAiChat, events).hit).toBe(true)
    const halves = [text(TOKEN.slice(0, 15), 0), text(TOKEN.slice(15), 1)]
    expect(scan(openAiChat, halves).hit).toBe(false)
  })
})

describe('what fuzzing found', () => {
  test.each(KINDS)('%s: white space before the JSON hides nothing', (_, family, make) => {
    const events = spelled(TOKEN, make).map(
      (event, at) => `${[' ', '\t', '  '][at % 3]}${JSON.stringify(event)}`,
    )
    expect(scan(family, events).hit).toBe(true)
  })
  test.each([-1.5, 0.5, '0', 1e21])('an index of %s is followed as its client follows it', (index) => {
    const choices = spelled(TOKEN, (content) => ({ choices: [{ index, delta: { content } }] }))
    expect(scan(openAiChat, choices).hit).toBe(true)
    const calls = [...TOKEN].flatMap((char) => [args(char, index as number), args('x', 7)])
    expect(scan(openAiChat, calls).hit).toBe(true)
  })
  test('responses: an item goes by its place, as clients follow it: some services give its id anew in every event', () => {
    const delta = (piece: string, at: number) => ({
      type: 'response.output_text.delta',
      item_id: `m${at}`,
      output_index: 0,
      content_index: 0,
      delta: piece,
    })
    expect(scan(openAiResponses, [...TOKEN].map(delta)).hit).toBe(true)
    const long = Array.from({ length: 5000 }, (_, at) => delta('x', at))
    expect(scan(openAiResponses, long).counts).toHaveLength(5000)
    const placeless = [...TOKEN].map((piece) => ({
      type: 'response.output_text.delta',
      item_id: 'm',
      delta: piece,
    }))
    expect(scan(openAiResponses, placeless).hit).toBe(true)
  })
  test('a choice without an index is followed by its position', () => {
    const choices = spelled(TOKEN, (content) => ({ choices: [{ delta: { content } }] }))
    expect(scan(openAiChat, choices).hit).toBe(true)
  })
})

describe('W-17 one event that carries it [reflect:stopped]', () => {
  const half = TOKEN.length >> 1
  const escaped = JSON.stringify(TOKEN).replaceAll('-', '\\u002d')
  test.each<[what: string, data: string]>([
    ['a value', JSON.stringify({ x: [{ y: TOKEN }] })],
    ['a key', JSON.stringify({ [TOKEN]: 1 })],
    ['an escaped value', `{"x":${escaped}}`],
    ['an escaped key', `{${escaped}:1}`],
    ['a key that comes twice, of which readers keep the last', `{"x":${escaped},"x":"harmless"}`],
    ['JSON in a string', JSON.stringify({ x: JSON.stringify({ y: TOKEN }).replaceAll('-', '\\u002d') })],
    ['what is no JSON', `Bearer ${TOKEN}`],
    ['broken JSON', `{"x":${escaped}`],
    [
      'a value after its block was followed for a while',
      JSON.stringify(text(`a${TOKEN.slice(0, half)}${TOKEN.slice(half)}`)),
    ],
  ])('%s', (_, data) => {
    expect(scan(openAiChat, [text('a'), data])).toMatchObject({ hit: true, counts: [1] })
  })
  test('the name of an event', () => {
    const reader = new EventReader({ eventBytes: 1000 })
    const [event] = reader.push(Buffer.from(`event: ${TOKEN}\ndata: {}\n\n`))
    const scanner = new EventScanner({
      matcher: MATCHER,
      family: openAiChat.follow(),
      usageAsked: true,
      onUsage: () => {},
      onCreated: () => {},
    })
    expect(() => event && scanner.push(event)).toThrow('reflection')
  })
})

describe('W-16 and decision 18 what waits', () => {
  test.each(KINDS)('%s: nothing, while no secret is in sight', (_, family, make) => {
    const events = spelled('Keys begin with sk-proj, as sk-pro jects do; s, sk, sk- and sk-p too.', make)
    expect(new Set(scan(family, events).counts)).toEqual(new Set([1]))
  })
  test.each(KINDS)('%s: from eight characters on, until it turns out to be none', (_, family, make) => {
    const events = ['a sk-proj', '-', '012', 'x', 'y'].map((piece) => make(piece))
    const { counts, out, hit } = scan(family, events)
    expect({ counts, hit }).toEqual({ counts: [1, 0, 0, 3, 1], hit: false })
    expect(out.match(/data: /g)).toHaveLength(5)
  })
  test('other blocks stay behind it, in order', () => {
    const { counts, out } = scan(openAiChat, [text('sk-proj-'), text('other', 1), text('!'), text('z')])
    expect(counts).toEqual([0, 0, 3, 1])
    expect(out.indexOf('sk-proj-')).toBeLessThan(out.indexOf('other'))
  })
  test.each<[string, WireFamily, object[]]>([
    ['a finish reason', openAiChat, [{ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }]],
    ['[DONE]', openAiChat, ['[DONE]' as unknown as object]],
  ])('%s ends the wait', (_, family, end) => {
    expect(scan(family, [text('sk-proj-'), ...end]).counts).toEqual([0, 2])
  })
  test.each<[string, WireFamily, (piece: string) => object[]]>([
    [
      'a finish reason',
      openAiChat,
      (content) => [{ choices: [{ index: 0, delta: { content }, finish_reason: 'stop' }] }],
    ],
    [
      'the end of its block',
      anthropicMessages,
      (text) => [
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        { type: 'content_block_stop', index: 0 },
      ],
    ],
    [
      'its done event',
      openAiResponses,
      (delta) => [
        { type: 'response.output_text.delta', item_id: 'm', output_index: 0, delta },
        { type: 'response.output_text.done', item_id: 'm', output_index: 0, text: '' },
      ],
    ],
  ])('W-17 a block that goes on after %s is followed further', (_, family, end) => {
    expect(scan(family, [...TOKEN].flatMap(end)).hit).toBe(true)
  })
  test('the end of its block ends the wait, in the other families too', () => {
    const anthropic = [
      { type: 'content_block_delta', index: 3, delta: { type: 'text_delta', text: 'sk-proj-' } },
      { type: 'content_block_stop', index: 3 },
    ]
    expect(scan(anthropicMessages, anthropic).counts).toEqual([0, 2])
    const ids = { item_id: 'm', output_index: 0, content_index: 0 }
    const responses = [
      { type: 'response.output_text.delta', ...ids, delta: 'sk-proj-' },
      { type: 'response.output_text.done', ...ids, text: 'sk-proj-' },
    ]
    expect(scan(openAiResponses, responses).counts).toEqual([0, 2])
  })
  test.each([
    ['4 MiB', 'x'.repeat(64 * 1024), 64],
    ['16,384 events', '', 16_384],
  ])('no more than %s does', (_, other, most) => {
    const reader = new EventReader({ eventBytes: 1 << 20 })
    const scanner = freshScanner(openAiChat)
    const push = (data: object) =>
      reader.push(Buffer.from(`data: ${JSON.stringify(data)}\n\n`)).map((event) => scanner.push(event).length)
    expect(push(text('sk-proj-'))).toEqual([0])
    for (let count = 2; count < most; count += 1) expect(push({ other })).toEqual([0])
    expect(() => {
      for (let count = 0; count < 2; count += 1) push({ other })
    }).toThrow('upstream_invalid')
  })
  test('what was asked for by the host alone does not reach the guest', () => {
    const usage = { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }
    expect(scan(openAiChat, [text('a'), usage], false).counts).toEqual([1, 0])
    expect(scan(openAiChat, [text('a'), usage], true).counts).toEqual([1, 1])
  })
})

/** All texts of events in one string, as somebody reads them who puts the pieces together. */
function readable(out: string): string {
  return [
    ...out.matchAll(
      /"(?:content|reasoning_content|arguments|id|delta|text|thinking|partial_json)":"((?:[^"\\]|\\.)*)"/g,
    ),
  ]
    .map(([, piece]) => JSON.parse(`"${piece}"`) as string)
    .join('')
}

describe('issue 4: an event of 16 MiB does not hold up the host', () => {
  const SIZE = 16 * 1024 * 1024 - 4096
  const fresh = () =>
    new EventScanner({
      matcher: MATCHER,
      family: openAiChat.follow(),
      usageAsked: true,
      onUsage: () => {},
      onCreated: () => {},
    })
  /** An event whose data is this text. */
  const eventOf = (data: string) => {
    const reader = new EventReader({ eventBytes: 16 * 1024 * 1024 })
    const bytes = Buffer.from(`data: ${data}\n\n`)
    const events: ServerEvent[] = []
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      events.push(...reader.push(bytes.subarray(at, at + PIECE_BYTES)))
    }
    return events[0] as ServerEvent
  }
  const content = (inner: string) => `{"choices":[{"index":0,"delta":{"content":"${inner}"}}]}`
  const HUGE: [what: string, data: () => string][] = [
    ['plain text', () => content('x'.repeat(SIZE))],
    ['nothing but escapes', () => content('\\u0061'.repeat(SIZE / 6))],
    ['backslashes, level over level', () => content(`${'\\'.repeat(1022)}xx`.repeat(SIZE / 1024))],
    ['characters of three bytes', () => content('日'.repeat(SIZE / 3))],
    [
      'a million small values',
      () => `{"logprobs":[${'0,'.repeat(1 << 20)}${' '.repeat(SIZE - (2 << 20))}0]}`,
    ],
    ['a value and much space', () => `{"x":[${'0,'.repeat(200_000)}${' '.repeat(SIZE - 400_016)}0]}`],
    ['fragments of JSON', () => JSON.stringify(args('\\u0061'.repeat(SIZE / 8)))],
  ]

  test.each(HUGE)('others run while it is searched, and the call can end meanwhile: %s', async (_, data) => {
    const event = eventOf(data())
    let others = 0
    let working = true
    const other = () => {
      others += 1
      if (working) setImmediate(other)
    }
    setImmediate(other)
    const never = new AbortController().signal
    expect((await inPieces(fresh().taking(event), never))[0]).toBe(event.bytes)
    working = false
    // Each of them ran between two pieces.
    expect(others).toBeGreaterThan(3)
    const control = new AbortController()
    setImmediate(() => control.abort(new TypeError('over')))
    await expect(inPieces(fresh().taking(event), control.signal)).rejects.toThrow('over')
  })

  test.each<[what: string, inner: string]>([
    ['at its end', 'x'.repeat(SIZE - 1000) + JSON.stringify(TOKEN).slice(1, -1)],
    ['where two pieces meet', 'x'.repeat(PIECE_BYTES * 3 - 50) + JSON.stringify(TOKEN).slice(1, -1)],
    [
      'below escapes',
      `${'x'.repeat(PIECE_BYTES * 3 - 70)}${unicode(unicode(TOKEN).replaceAll('\\', '\\\\'))}`,
    ],
  ])('W-17 a secret in it is found: %s', async (_, inner) => {
    const { signal } = new AbortController()
    await expect(inPieces(fresh().taking(eventOf(content(inner))), signal)).rejects.toMatchObject({
      reason: 'reflection',
    })
  })

  test('W-18 and so is one that begins in it and ends in the next', async () => {
    const scanner = fresh()
    const { signal } = new AbortController()
    const half = TOKEN.slice(0, 20)
    const begun = eventOf(content('x'.repeat(PIECE_BYTES * 4) + JSON.stringify(half).slice(1, -1)))
    expect(await inPieces(scanner.taking(begun), signal)).toHaveLength(0)
    expect(() => scanner.push(eventOf(JSON.stringify(text(TOKEN.slice(20)))))).toThrow('reflection')
  })

  test('more values than any delta has are refused', () => {
    for (const data of [
      JSON.stringify(text([] as never)).replace('[]', `[${'0,'.repeat(20_000)}0]`),
      `{"choices":[${'0,'.repeat(2000)}0]}`,
      content('x'.repeat(PIECE_BYTES)).replace('"index":0', '"index":0,"index":0'),
    ]) {
      expect(() => fresh().push(eventOf(data))).toThrow('upstream_invalid')
    }
  })
})

function unicode(text: string): string {
  return [...text].map((char) => `\\u00${char.charCodeAt(0).toString(16).padStart(2, '0')}`).join('')
}
