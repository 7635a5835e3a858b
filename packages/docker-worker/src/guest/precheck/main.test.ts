import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import {
  isWorkerHello,
  limits,
  PROTOCOL_VERSION,
  type PrecheckJob,
  readPrecheckResult,
} from '@sandbox/protocol'
import { sourceFlags } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { type HostScript, openWorkerHost } from '../../testing/worker-host.ts'

const program = fileURLToPath(new URL('main.ts', import.meta.url))
const bundle = fileURLToPath(new URL('../../../dist/guest/precheck.js', import.meta.url))

function job(script: string, changes: Partial<PrecheckJob> = {}): PrecheckJob {
  return {
    protocol: PROTOCOL_VERSION,
    turnId: 'run-1',
    remainingMs: 60_000,
    script,
    firedAt: '2026-03-01T08:00:00.000Z',
    timeZone: 'Europe/Berlin',
    today: '2026-03-01',
    schedule: { id: '7', title: 'Morning' },
    servers: [{ server: 'notes', tools: ['list', 'find'] }],
    ...changes,
  }
}

/** Runs a script in the real program, as it is built ("pnpm run build:guest"), with a host that answers its calls. */
async function runScript(
  script: string,
  options: { notes?: HostScript; changes?: Partial<PrecheckJob>; start?: readonly string[] } = {},
) {
  const { notes = () => text('[]'), start = [bundle] } = options
  await using host = await openWorkerHost({
    scripts: { '/worker/next': () => ({ json: job(script, options.changes) }), '/mcp/notes': notes },
  })
  const args = [...start, '--socket', host.socketPath]
  const child = spawn(process.execPath, args, { env: {}, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] })
  const written = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk) => {
      written[name] += chunk
    })
  }
  const [code] = await once(child, 'close')
  const posted = host.bodies('/worker/result')
  for (const one of posted) expect(readPrecheckResult(one)).toEqual(one)
  return { code, ...written, seen: host.seen, calls: host.bodies('/mcp/notes'), result: posted[0]?.result }
}

/** The answer of an MCP server whose tool gave this text. */
function text(value: string, more: object = {}) {
  return { json: { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: value }], ...more } } }
}

/** A script that tells what a call throws. */
const telling = (call: string) =>
  `export default ({ mcp }) => ${call}.then((note) => ({ wake: false, note }), (e) => { throw e })`

test('decision 24 hello, job, ack, call, result, in this order; exit 0 and nothing on stdout', async () => {
  const script = `export default async ({ mcp, ...rest }) => {
    const notes = await mcp.json('notes', 'list', { max: 2 })
    return { wake: true, context: JSON.stringify({ notes, rest }) }
  }`
  const { code, stdout, stderr, seen, calls, result } = await runScript(script, {
    notes: () => text('["a"]'),
  })
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: '', stderr: '' })
  expect(seen.map(({ path }) => path)).toEqual([
    '/worker/hello',
    '/worker/next',
    '/worker/ack',
    '/mcp/notes',
    '/worker/result',
  ])
  expect(isWorkerHello(seen[0]?.body)).toBe(true)
  expect(seen[0]?.body).toMatchObject({ mode: 'precheck' })
  expect(calls).toEqual([
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list', arguments: { max: 2 } } },
  ])
  const { firedAt, timeZone, today, schedule } = job('')
  expect(result).toMatchObject({ ok: true, wake: true })
  const told = JSON.parse((result as { context: string }).context)
  expect(told).toEqual({ notes: ['a'], rest: { firedAt, timeZone, today, schedule } })
})

describe('PC-11 what a script is', () => {
  test.each<[string, string, RegExp]>([
    ['is no JavaScript', 'export default function( {', /^The script cannot be loaded: /],
    ['throws at once', 'throw new TypeError("at load")', /^The script cannot be loaded: at load$/],
    [
      'imports what is not there',
      'import x from "./nothing.mjs"; export default x',
      /^The script cannot be loaded: (?!.*base64).*nothing\.mjs/,
    ],
    ['has no default export', 'export const run = () => {}', /no default export that is a function/],
    ['has another default export', 'export default { wake: false }', /no default export that is a function/],
    ['returns nothing', 'export default () => {}', /has to return \{ wake: false/],
    ['wakes without words', 'export default () => ({ wake: true })', /has to return \{ wake: false/],
    ['has a note that is no text', 'export default () => ({ wake: false, note: 1 })', /has to return/],
    ['throws', 'export default () => { throw new Error("no\\u0007\\u001b[31m luck") }', /^no {2}\[31m luck$/],
    [
      'throws what has no words',
      'export default () => { throw Object.create(null) }',
      /^The script failed\.$/,
    ],
    [
      'fails where nobody looks',
      'export default () => new Promise(() => setTimeout(() => { throw new Error("stray") }))',
      /^stray$/,
    ],
    [
      'rejects where nobody looks',
      'export default () => new Promise(() => void Promise.reject(new Error("stray")))',
      /^stray$/,
    ],
  ])('a script that %s: words', async (_, script, words) => {
    const { code, result } = await runScript(script)
    expect({ code, result }).toEqual({ code: 0, result: { ok: false, error: expect.stringMatching(words) } })
  })

  test('PC-09 what it returns is bounded, in characters and in bytes', async () => {
    const of = (size: number, letter: string) =>
      runScript(`export default () => ({ wake: true, context: ${JSON.stringify(letter)}.repeat(${size}) })`)
    expect((await of(limits.PRECHECK_TEXT_CHARS + 1, 'x')).result).toMatchObject({
      ok: false,
      error: /32001 characters of text, 32000 at most/,
    })
    expect((await of(limits.PRECHECK_TEXT_CHARS, '語')).result).toMatchObject({
      ok: false,
      error: /bytes of text, 65536 at most/,
    })
    expect((await of(limits.PRECHECK_TEXT_CHARS, 'x')).result).toMatchObject({ ok: true, wake: true })
  })

  test('PC-12 the words of a failure have 1000 characters at most, and no half ones', async () => {
    const { result } = await runScript(`export default () => { throw new Error('x'.repeat(998) + '😀😀') }`)
    expect(result).toEqual({ ok: false, error: `${'x'.repeat(998)}…` })
  })
})

test('PC-13 what it logs goes to stderr, and timers of its own keep nothing alive', async () => {
  const script = `export default () => {
    setInterval(() => {}, 1000)
    console.log('logged'); console.info('%s too', 'info'); console.table([1]); console.error('err')
    return { wake: false, note: 'n' }
  }`
  const { code, stdout, stderr, result } = await runScript(script)
  expect({ code, stdout, result }).toEqual({
    code: 0,
    stdout: '',
    result: { ok: true, wake: false, note: 'n' },
  })
  expect(stderr).toMatch(/logged\ninfo too\n[\s\S]*err\n/)
})

test('a script that waits for ever is ended before the host ends the run, and so are its calls', async () => {
  const script = `export default async ({ mcp }) => {
    await mcp.call('notes', 'list').catch(() => {})
    await new Promise(() => {})
  }`
  const never = () => new Promise<never>(() => {})
  const { code, result } = await runScript(script, { changes: { remainingMs: 600 }, notes: never })
  expect({ code, result }).toEqual({
    code: 0,
    result: { ok: false, error: 'The script was not done in time.' },
  })
})

describe('PC-12 calls', () => {
  test.each<[string, HostScript, string]>([
    ['the tool failed', () => text('no such note', { isError: true }), 'notes/list: no such note'],
    [
      'an RPC error',
      () => ({ json: { error: { code: -32602, message: 'bad max' } } }),
      'notes/list: bad max (-32602)',
    ],
    ['no result', () => ({ json: { result: 'x' } }), 'notes/list: the server gave no result'],
    ['403', () => ({ status: 403, json: {} }), 'notes/list: it is not granted to this schedule'],
    ['404', () => ({ status: 404, json: {} }), 'notes/list: its server is not granted to this schedule'],
    ['410', () => ({ status: 410, json: {} }), 'notes/list: the run is over'],
    ['429', () => ({ status: 429, json: {} }), 'notes/list: the calls of this run are used up'],
    ['502', () => ({ status: 502, json: {} }), 'notes/list: its server failed or gave no usable answer'],
    ['418', () => ({ status: 418, json: {} }), 'notes/list: the call got 418'],
    ['a broken connection', () => 'break', 'notes/list: the connection to the host was lost'],
    ['no JSON', () => ({ text: 'oops' }), 'notes/list: the answer is no JSON'],
    ['a long error', () => text('y'.repeat(2000), { isError: true }), `notes/list: ${'y'.repeat(987)}…`],
  ])('%s: words', async (_, notes, error) => {
    expect((await runScript(telling(`mcp.call('notes', 'list')`), { notes })).result).toEqual({
      ok: false,
      error,
    })
  })

  test.each<[string, string, RegExp]>([
    ['an ungranted tool', `mcp.call('notes', 'drop')`, /^notes\/drop: .*may call notes\/list, notes\/find$/],
    ['an unknown server', `mcp.json('mail', 'list')`, /^mail\/list: it is not granted to this schedule/],
    [
      'arguments that are no object',
      `mcp.call('notes', 'list', ['x'])`,
      /the arguments have to be an object/,
    ],
    [
      'large arguments',
      `mcp.call('notes', 'list', { x: 'x'.repeat(65536) })`,
      /its arguments are over 65536 bytes/,
    ],
    ['arguments that are no JSON', `mcp.call('notes', 'list', { x: 1n })`, /BigInt/],
  ])('%s is refused here, and asks the host nothing', async (_, call, words) => {
    const { calls, result } = await runScript(telling(call))
    expect({ calls, result }).toEqual({
      calls: [],
      result: { ok: false, error: expect.stringMatching(words) },
    })
  })

  test('PC-04 calls at once wait for each other: the host takes one at a time', async () => {
    let working = 0
    let most = 0
    const notes: HostScript = async (_, index) => {
      working += 1
      most = Math.max(most, working)
      await new Promise((resolve) => setTimeout(resolve, 20))
      working -= 1
      return index === 1 ? { status: 502, json: {} } : text(String(index))
    }
    const script = `export default async ({ mcp }) => {
      const all = await Promise.allSettled([1, 2, 3].map(() => mcp.call('notes', 'list')))
      return { wake: false, note: all.map((one) => one.value ?? 'failed').join() }
    }`
    const { result } = await runScript(script, { notes })
    expect({ most, result }).toEqual({ most: 1, result: { ok: true, wake: false, note: '0,failed,2' } })
  })

  test('mcp.json takes the structured result, else the text; text that is no JSON is an error', async () => {
    const notes: HostScript = (_, index) =>
      index === 0 ? text('text', { structuredContent: { a: 1 } }) : text(index === 1 ? '{"b":2}' : 'plain')
    const script = `export default async ({ mcp }) => {
      const one = await mcp.json('notes', 'list')
      const two = await mcp.json('notes', 'list')
      const three = await mcp.json('notes', 'list').catch((error) => error.message)
      return { wake: false, note: JSON.stringify([one, two, three]) }
    }`
    const { result } = await runScript(script, { notes })
    expect(JSON.parse((result as { note: string }).note)).toEqual([
      { a: 1 },
      { b: 2 },
      'notes/list: the result is no JSON',
    ])
  })
})

test.each<[string, unknown]>([
  ['another version', { protocol: 2 }],
  ['servers that are none', { servers: [{ server: 'x' }] }],
  ['no script', { script: undefined }],
])('a job of %s is answered with words', async (_, changes) => {
  const { code, result } = await runScript('export default () => ({ wake: false })', {
    changes: changes as object,
  })
  expect({ code, result }).toMatchObject({ code: 0, result: { ok: false, error: /could not be read/ } })
})

test('a host without a job ends it, exit 0; wrong arguments, exit 2', async () => {
  await using host = await openWorkerHost({ scripts: { '/worker/next': () => ({ status: 410, json: {} }) } })
  const ended = async (args: readonly string[]) => {
    const child = spawn(process.execPath, [bundle, ...args], { env: {}, stdio: 'ignore' })
    return (await once(child, 'close'))[0]
  }
  expect(await ended(['--socket', host.socketPath])).toBe(0)
  expect(await ended(['--socket', 'x'])).toBe(2)
})

test('the bundle is small, and does what its source does', async () => {
  expect(readFileSync(bundle).byteLength).toBeLessThan(40 * 1024)
  const script = 'export default () => ({ wake: false })'
  const { code, result } = await runScript(script, { start: [...sourceFlags, program] })
  expect({ code, result }).toEqual({ code: 0, result: { ok: true, wake: false } })
})
