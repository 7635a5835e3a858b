import { randomBytes } from 'node:crypto'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  byChannel,
  byChannelAndSpeaker,
  createSecretMatcher,
  firstOf,
  Secret,
} from '@sandbox/credential-scope'
import { keyFile } from '@sandbox/credential-scope/sources'
import { type BenchRow, judged, median, quantile } from './report.ts'

const ORIGIN = 'https://api.example.com'
/** Short scans, many rounds, ours and the peers in turns: so a busy machine slows all of them alike. */
const ROUNDS = 41
const TEXT_BYTES = 500_000
const SCOPES = 100_000

/** Scanning against its peers, and choosing among 100,000 scopes. */
export async function run(): Promise<readonly BenchRow[]> {
  const text = eventStream(TEXT_BYTES)
  return [
    ...[40, 64, 108].flatMap((chars) => throughput(text, chars, 1)),
    ...throughput(text, 40, 8),
    ...throughput(text, 40, 64),
    ...base64Text(),
    ...buildTime(),
    ...(await lookups()),
    ...keyFileRows(),
  ]
}

/** Streamed model answers, as they come over the wire. */
function eventStream(bytes: number): Uint8Array {
  const events: string[] = []
  for (let size = 0, i = 0; size < bytes; i++) {
    const delta = { type: 'text_delta', text: `word number ${i} of some prose, as a model writes it, ` }
    const event = `event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta })}\n\n`
    events.push(event)
    size += event.length
  }
  return new Uint8Array(Buffer.from(events.join('')))
}

function token(chars: number): string {
  return `sk-ant-api03-${randomBytes(chars).toString('base64url')}`.slice(0, chars)
}

/** The forms that a peer searches for: those that our own matcher looks for are not exported, these are alike. */
function formsOf(secret: string): Buffer[] {
  const raw = Buffer.from(secret)
  const each = (form: (byte: number) => string) => Buffer.from([...raw].map(form).join(''))
  const hex = (byte: number) => byte.toString(16).padStart(2, '0')
  const special = (form: (byte: number) => string) =>
    each((byte) => (/[0-9A-Za-z]/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : form(byte)))
  const escapes = [
    (byte: number) => `%${hex(byte)}`,
    (byte: number) => `%${hex(byte).toUpperCase()}`,
    (byte: number) => `\\u00${hex(byte)}`,
    (byte: number) => `\\u00${hex(byte).toUpperCase()}`,
    (byte: number) => `&#${byte};`,
    (byte: number) => `&#x${hex(byte)};`,
    (byte: number) => `&#x${hex(byte).toUpperCase()};`,
  ]
  const base64 = [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), raw]).toString('base64')
    const stable = text.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + raw.length) * 8) / 6))
    return [stable, stable.replaceAll('+', '-').replaceAll('/', '_')].map((form) => Buffer.from(form))
  })
  const all = [
    raw,
    each(hex),
    Buffer.from(raw.toString('hex').toUpperCase()),
    ...escapes.flatMap((escaped) => [each(escaped), special(escaped)]),
    ...base64,
    Buffer.from(secret, 'utf16le').subarray(0, -1),
  ]
  return [...new Map(all.map((form) => [form.toString('latin1'), form])).values()]
}

function throughput(text: Uint8Array, chars: number, live: number): BenchRow[] {
  const tokens = Array.from({ length: live }, () => token(chars))
  const matcher = createSecretMatcher(tokens.map((one) => new Secret({ token: one, origin: ORIGIN })))
  const forms = tokens.flatMap(formsOf)
  const view = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  const latin = view.toString('latin1')
  const expression = new RegExp(forms.map((form) => escapeRegExp(form.toString('latin1'))).join('|'))
  const automaton = ahoCorasick(live === 1 ? forms : [])
  const ways = [
    () => matcher.matchesBytes(text),
    () => forms.some((form) => view.includes(form)),
    ...(live === 1 ? [() => expression.test(latin), () => automaton(text)] : []),
  ]
  const [ours = 0, each = 0, regular, states] = speeds(text.length, live === 1 ? ROUNDS : 9, ways)
  const about = `${chars} characters, ${live} live, ${forms.length} forms`
  const id = chars === 40 && live === 1 ? 'scan.throughput' : `scan.throughput.${chars}x${live}`
  return [
    row(id, `scan, ${about}; peer: indexOf per form`, ours, each, '>= 3'),
    ...(regular === undefined
      ? []
      : [row(`${id}.regexp`, `scan, ${about}; peer: one regular expression`, ours, regular)]),
    ...(states === undefined
      ? []
      : [row(`${id}.automaton`, `scan, ${about}; peer: Aho-Corasick table`, ours, states)]),
  ]
}

/** The worst text for a shift table that is still likely: an image in an answer. */
function base64Text(): BenchRow[] {
  const text = new Uint8Array(Buffer.from(randomBytes((TEXT_BYTES * 3) / 4).toString('base64')))
  const one = token(40)
  const matcher = createSecretMatcher([new Secret({ token: one, origin: ORIGIN })])
  const view = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  const forms = formsOf(one)
  const [ours = 0, each = 0] = speeds(text.length, ROUNDS, [
    () => matcher.matchesBytes(text),
    () => forms.some((form) => view.includes(form)),
  ])
  return [
    row(
      'scan.throughput.base64',
      'scan of base64 text, 40 characters; peer: indexOf per form',
      ours,
      each,
      '>= 3',
    ),
  ]
}

function buildTime(): BenchRow[] {
  const fresh = Array.from({ length: 200 }, () => new Secret({ token: token(108), origin: ORIGIN }))
  const known = new Secret({ token: token(108), origin: ORIGIN })
  const text = 'x'.repeat(2_000)
  const micros = (secret: Secret) => 1000 * timed(() => createSecretMatcher([secret]).matches(text))
  micros(known)
  const first = fresh.map(micros)
  const again = Array.from({ length: 2_000 }, () => micros(known))
  return [
    {
      id: 'scan.build',
      what: 'matcher for a new credential',
      unit: 'µs',
      value: median(first),
      p99: quantile(first, 0.99),
    },
    {
      id: 'scan.rebuild',
      what: 'matcher for a known credential',
      unit: 'µs',
      value: median(again),
      p99: quantile(again, 0.99),
    },
  ]
}

async function lookups(): Promise<BenchRow[]> {
  const channels = new Map(
    Array.from({ length: SCOPES / 2 }, (_, i) => [`demo:channel-${i}`, `sk-channel-${i}-0123456789`]),
  )
  const speakers = new Map(
    Array.from({ length: SCOPES / 20 }, (_, i) => [
      `demo:team-${i}`,
      new Map(Array.from({ length: 10 }, (_, j) => [`u-${j}`, `sk-team-${i}-${j}-0123456789`])),
    ]),
  )
  const byBoth = byChannelAndSpeaker(speakers)
  const getter = firstOf(byBoth, byChannel(channels))
  const micros: number[] = []
  for (let i = 0; i < 22_000; i++) {
    const at = i * 7919
    const channel = i % 2 === 0 ? `demo:team-${at % (SCOPES / 20)}` : `demo:channel-${at % (SCOPES / 2)}`
    const scope = { channel, speaker: { id: `u-${i % 10}`, name: '' } }
    const from = performance.now()
    await getter(scope)
    if (i >= 2_000) micros.push(1000 * (performance.now() - from))
  }
  const p99 = quantile(micros, 0.99)
  const goal = { goal: '<= 20', holds: p99 <= 20 }
  return [
    {
      id: 'scopes.lookup',
      what: `picker, ${SCOPES} scopes; the goal is for p99`,
      unit: 'µs',
      value: median(micros),
      p99,
      ...goal,
    },
  ]
}

function keyFileRows(): BenchRow[] {
  const dir = mkdtempSync(join(tmpdir(), 'sbx-bench-'))
  const path = join(dir, 'keys.json')
  const write = () => {
    const rules = Array.from({ length: SCOPES }, (_, i) => ({
      channel: `demo:channel-${i}`,
      key: `env:KEY_${i % 100}`,
    }))
    writeFileSync(`${path}.new`, JSON.stringify({ rules }), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }
  try {
    write()
    const env = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`KEY_${i}`, `sk-key-${i}-0123456789`]),
    )
    const { getter } = keyFile({ path, env })
    const ask = (i: number) =>
      timed(() => void getter({ channel: `demo:channel-${i % SCOPES}`, speaker: { id: 'u', name: '' } }))
    // The first lookups read the file again until its last change is long enough ago.
    for (const until = performance.now() + 500; performance.now() < until; ) ask(0)
    const micros = Array.from({ length: 20_000 }, (_, i) => 1000 * ask(i * 7919))
    const reloads = Array.from({ length: 5 }, (_, i) => {
      write()
      return ask(i)
    })
    const p99 = quantile(micros, 0.99)
    return [
      {
        id: 'scopes.lookup.file',
        what: `key file, ${SCOPES} rules, with its stat; the goal is for p99`,
        unit: 'µs',
        value: median(micros),
        p99,
        goal: '<= 20',
        holds: p99 <= 20,
      },
      {
        id: 'scopes.reload',
        what: `first call after a change of ${SCOPES} rules`,
        unit: 'ms',
        value: median(reloads),
        p99: quantile(reloads, 0.99),
      },
    ]
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** GB/s of ours; `ratio` says how many times as fast as the peer. */
function row(id: string, what: string, value: number, peer: number, goal?: string): BenchRow {
  return judged({
    id,
    what,
    unit: 'GB/s',
    value,
    peer,
    ratio: value / peer,
    ...(goal !== undefined && { goal }),
  })
}

/** GB/s of each way. */
function speeds(bytes: number, rounds: number, ways: readonly (() => unknown)[]): number[] {
  const times = ways.map((): number[] => [])
  for (let round = -2; round < rounds; round++) {
    for (const [index, way] of ways.entries()) {
      const took = timed(way)
      if (round >= 0) times[index]?.push(took)
    }
  }
  return times.map((taken) => bytes / 1e6 / median(taken))
}

function timed(work: () => unknown): number {
  const from = performance.now()
  work()
  return performance.now() - from
}

function escapeRegExp(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** The textbook automaton with a dense table: one step per byte. */
function ahoCorasick(patterns: readonly Uint8Array[]): (data: Uint8Array) => boolean {
  const size = patterns.reduce((sum, pattern) => sum + pattern.length, 1)
  const next = new Int32Array(size * 256)
  const ends = new Uint8Array(size)
  let states = 1
  for (const pattern of patterns) {
    let state = 0
    for (const byte of pattern) {
      const at = state * 256 + byte
      if (next[at] === 0) next[at] = states++
      state = next[at] as number
    }
    ends[state] = 1
  }
  linkFailures(next, ends)
  return (data) => {
    let state = 0
    for (let i = 0; i < data.length; i++) {
      state = next[state * 256 + (data[i] as number)] as number
      if (ends[state] === 1) return true
    }
    return false
  }
}

function linkFailures(next: Int32Array, ends: Uint8Array): void {
  const fail = new Int32Array(ends.length)
  const queue = [...next.subarray(0, 256)].filter((state) => state !== 0)
  for (const state of queue) {
    const back = fail[state] as number
    if (ends[back] === 1) ends[state] = 1
    for (let byte = 0; byte < 256; byte++) {
      const child = next[state * 256 + byte] as number
      const fallback = next[back * 256 + byte] as number
      if (child === 0) next[state * 256 + byte] = fallback
      else {
        fail[child] = fallback
        queue.push(child)
      }
    }
  }
}
