import { randomBytes } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { type FieldRule, type ObjectRule, type RequestTable, rewriteRequest } from '@sandbox/broker/engine'
import { type BenchRow, judged, median, quantile } from './report.ts'

const HOST = { model: 'host-model', maxOutputTokens: 4096 }
const KIB = 1024
/** A timer of one millisecond can never be seen earlier: what is above it is a block. */
const TIMER_MS = 1

const message: ObjectRule = {
  fields: new Map<string, FieldRule>([
    ['role', { string: { oneOf: ['user', 'assistant', 'tool'] } }],
    ['content', { string: true, null: true }],
    ['tool_calls', 'keep'],
    ['tool_call_id', { string: true }],
  ]),
}
/** As a route's table: each message is looked at, the model is written over, two fields are cut. */
const TABLE: RequestTable = {
  family: 'bench',
  body: {
    fields: new Map<string, FieldRule>([
      ['model', { set: 'model' }],
      ['max_tokens', { cap: 'maxOutputTokens' }],
      ['messages', { array: { items: { object: message }, max: 1_000_000 } }],
    ]),
  },
}

/** Bodies as their own bytes, against parsing and writing them anew; and what a large one does to everybody else. */
export async function run(): Promise<readonly BenchRow[]> {
  return [
    ...(await compare('16k', conversation(16 * KIB), 400)),
    ...(await compare('400k', conversation(400 * KIB), 60)),
    ...(await compare('400k.files', files(400 * KIB), 60)),
    ...(await compare('30m', conversation(30 * KIB * KIB), 5)),
    ...(await compare('30m.images', images(30 * KIB * KIB), 5)),
    await block('30m', conversation(30 * KIB * KIB)),
    await block('30m.images', images(30 * KIB * KIB)),
    await block('30m.brackets', brackets(30 * KIB * KIB)),
  ]
}

function bodyOf(messages: readonly object[]): Uint8Array {
  const body = { model: 'guest-model', store: true, max_tokens: 100_000, messages, user: 'someone' }
  return new Uint8Array(Buffer.from(JSON.stringify(body)))
}

/** Prose, code with its escapes, tool calls: some 600 bytes a message. */
function conversation(bytes: number): Uint8Array {
  const prose = 'The function reads the file and returns its lines; “é” is kept as it is. '.repeat(6)
  const code = `const a = {\n  "name": "x",\n  path: '/tmp/a'\n}\nif (a.name !== "x") {\n  throw new TypeError("no")\n}\n`
  const messages: object[] = []
  for (let size = 0, i = 0; size < bytes; size += 1850, i++) {
    const call = {
      id: `call_${i}`,
      type: 'function',
      function: { name: 'read', arguments: `{"path":"/a/${i}"}` },
    }
    messages.push(
      { role: 'user', content: prose },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: `call_${i}`, content: code.repeat(5) },
      { role: 'assistant', content: prose },
    )
  }
  return bodyOf(messages)
}

/** Files of 4 KiB that a tool has read, as agents send them. */
function files(bytes: number): Uint8Array {
  const prose = 'A line of a file that a tool has read, some eighty characters long, then the end.\n'.repeat(
    50,
  )
  return bodyOf(
    Array.from({ length: Math.ceil(bytes / prose.length) }, () => ({
      role: 'tool',
      tool_call_id: 'c',
      content: prose,
    })),
  )
}

/** Pictures of 2 MB. */
function images(bytes: number): Uint8Array {
  const url = `data:image/png;base64,${randomBytes((bytes / 15) * 0.75).toString('base64')}`
  return bodyOf(Array.from({ length: 15 }, () => ({ role: 'user', content: url })))
}

/** The most tokens that a body of that size can have. */
function brackets(bytes: number): Uint8Array {
  const text = `{"model":"x","messages":[],"junk":[${'[],'.repeat(bytes / 3)}0]}`
  return new Uint8Array(Buffer.from(text))
}

async function rewrite(bytes: Uint8Array): Promise<Uint8Array> {
  const result = await rewriteRequest({ bytes, table: TABLE, host: HOST })
  if (!result.ok) throw new TypeError(`bench: the body was refused at ${result.path}: ${result.problem}`)
  return result.bytes
}

function parseAndWrite(bytes: Uint8Array): Uint8Array {
  const { store: _store, user: _user, ...body } = JSON.parse(Buffer.from(bytes).toString())
  return Buffer.from(JSON.stringify({ ...body, model: HOST.model, max_tokens: HOST.maxOutputTokens }))
}

async function compare(id: string, bytes: Uint8Array, rounds: number): Promise<BenchRow[]> {
  const ours: number[] = []
  const peer: number[] = []
  if (!Buffer.from(await rewrite(bytes)).equals(parseAndWrite(bytes)))
    throw new TypeError('bench: results differ')
  // In turns, after a warm-up, so that a busy machine slows both.
  for (let round = -Math.min(rounds, 50); round < rounds; round++) {
    const startMs = performance.now()
    await rewrite(bytes)
    const middleMs = performance.now()
    parseAndWrite(bytes)
    const endMs = performance.now()
    if (round < 0) continue
    ours.push(middleMs - startMs)
    peer.push(endMs - middleMs)
  }
  return [
    judged({
      id: `json.rewrite.${id}`,
      what: `a body of ${Math.round(bytes.length / KIB)} KiB, edited; peer: JSON.parse and JSON.stringify`,
      unit: 'ms',
      value: median(ours),
      p99: quantile(ours, 0.99),
      peer: median(peer),
      ratio: median(ours) / median(peer),
      goal: '<= 1',
    }),
  ]
}

/**
 * The longest that a timer waits while a body is rewritten. The peer does nothing but spin in pieces of 5 ms for as
 * long: what it shows above that is the machine's, so the goal holds on a quiet one. The best of some rounds.
 */
async function block(id: string, bytes: Uint8Array): Promise<BenchRow> {
  const worst: number[] = []
  const control: number[] = []
  for (let round = 0; round < 5; round++) {
    const startMs = performance.now()
    worst.push(await longestWait(async () => void (await rewrite(bytes))))
    const tookMs = performance.now() - startMs
    control.push(await longestWait(() => spin(tookMs)))
  }
  return judged({
    id: `json.block.${id}`,
    what: `longest block of the event loop during one rewrite of ${Math.round(bytes.length / KIB)} KiB; peer: 5 ms pieces`,
    unit: 'ms',
    value: Math.min(...worst),
    p99: Math.max(...worst),
    peer: Math.min(...control),
    goal: '<= 50',
  })
}

async function longestWait(work: () => Promise<void>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: TIMER_MS })
  delay.enable()
  await work()
  await new Promise((resolve) => setTimeout(resolve, 10))
  delay.disable()
  return delay.max / 1e6
}

async function spin(forMs: number): Promise<void> {
  const endMs = performance.now() + forMs
  while (performance.now() < endMs) {
    const pieceMs = performance.now() + 5
    while (performance.now() < pieceMs);
    await new Promise((resolve) => setImmediate(resolve))
  }
}
