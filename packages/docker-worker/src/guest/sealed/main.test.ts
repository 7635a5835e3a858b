import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isWorkerHello, protocolMismatch } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import {
  completion,
  type HostScript,
  openWorkerHost,
  sampleTurn,
  toolCalls,
  type WorkerHost,
} from '../../testing/worker-host.ts'

const program = fileURLToPath(new URL('main.ts', import.meta.url))
const conditions = '--conditions=@sandbox/source'

/** The real program: no environment, stdin closed, working directory `/`. */
function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [conditions, program, ...args], {
    env: {},
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function run(args: readonly string[]) {
  const child = start(args)
  let output = ''
  child.stdout?.on('data', (chunk) => {
    output += chunk
  })
  child.stderr?.on('data', (chunk) => {
    output += chunk
  })
  const [code] = await once(child, 'close')
  return { code, output }
}

function runOn(host: WorkerHost) {
  return run(['--socket', host.socketPath, '--workspace', host.workspace])
}

async function runScripted(scripts: Readonly<Record<string, HostScript>>) {
  await using host = await openWorkerHost({ scripts })
  return { ...(await runOn(host)), paths: host.seen.map(({ path }) => path) }
}

test('one turn: hello, next, ack, model, result, in this order, on one connection; exit 0', async () => {
  await using host = await openWorkerHost({})
  const { code, output } = await runOn(host)
  expect({ code, output }).toEqual({ code: 0, output: '' })
  expect(host.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /worker/hello',
    'GET /worker/next',
    'POST /worker/ack',
    'POST /model',
    'POST /worker/result',
  ])
  expect(host.bodies('/worker/result')).toEqual([{ turnId: 'turn-1', result: { ok: true, text: 'Hi.' } }])
  expect(new Set(host.seen.map(({ connection }) => connection)).size).toBe(1)
})

test('WT-01 sends no default header; the worker nonce on worker routes, the turn nonce on calls', async () => {
  await using host = await openWorkerHost({})
  await runOn(host)
  const [hello, next, ack, model, result] = host.seen
  const body = ['host', 'content-type', 'content-length']
  expect(hello?.headerNames).toEqual(body)
  expect(next?.headerNames).toEqual(['host', 'x-sandbox-worker'])
  expect(ack?.headerNames).toEqual([...body, 'x-sandbox-worker'])
  expect(model?.headerNames).toEqual([...body, 'authorization', 'x-sandbox-turn'])
  expect(result?.headerNames).toEqual([...body, 'x-sandbox-worker'])
  expect(model?.headers).toMatchObject({
    host: 'broker',
    authorization: 'Bearer sandbox-dummy-key',
    'x-sandbox-turn': 'turn-nonce-0123456789',
  })
  expect(result?.headers['x-sandbox-worker']).toBe('worker-nonce-0123456789')
})

test('decision 2: the hello has the version and a posture that the protocol accepts', async () => {
  await using host = await openWorkerHost({})
  await runOn(host)
  const [hello] = host.bodies('/worker/hello')
  expect(isWorkerHello(hello)).toBe(true)
  expect(hello).toMatchObject({ protocol: 1, mode: 'sealed', posture: { uid: process.getuid?.() } })
})

test('decision 7: the workspace is not touched before the turn', async () => {
  let files: string[] | undefined
  await using host = await openWorkerHost({
    scripts: {
      '/worker/ack': () => {
        files = readdirSync(host.workspace)
        return { json: {} }
      },
    },
  })
  writeFileSync(`${host.workspace}/memory.json`, 'broken')
  await runOn(host)
  expect(files).toEqual(['memory.json'])
  expect(readdirSync(host.workspace).sort()).toEqual(['history.json', 'memory.json.bad'])
})

test('an empty poll is asked again; the turn may come later', async () => {
  const { code, paths } = await runScripted({
    '/worker/next': (_, index) => (index < 1 ? { status: 408, json: {} } : { json: sampleTurn() }),
  })
  expect(code).toBe(0)
  expect(paths.slice(0, 4)).toEqual(['/worker/hello', '/worker/next', '/worker/next', '/worker/ack'])
})

test('W-50 a poll, an ack and a result whose connection broke are sent once more', async () => {
  const breakFirst: HostScript = (call, index) => {
    if (index === 0) return 'break'
    return { json: call.path === '/worker/next' ? sampleTurn() : {} }
  }
  const { code, paths } = await runScripted({
    '/worker/next': breakFirst,
    '/worker/ack': breakFirst,
    '/worker/result': breakFirst,
  })
  expect(code).toBe(0)
  expect(paths.filter((path) => path === '/worker/result')).toHaveLength(2)
})

test('a call that may have spent something is never sent twice', async () => {
  await using host = await openWorkerHost({ scripts: { '/model': () => 'break' } })
  expect((await runOn(host)).code).toBe(0)
  expect(host.bodies('/model')).toHaveLength(1)
  expect(host.outcome()).toMatchObject({ ok: false, code: 'model_failed' })
})

test('a host without a turn (410) ends the worker, exit 0', async () => {
  const { code, paths } = await runScripted({ '/worker/next': () => ({ status: 410, json: {} }) })
  expect({ code, paths }).toEqual({ code: 0, paths: ['/worker/hello', '/worker/next'] })
})

test('decision 8: a host of another version refuses; the log names both versions, exit 3', async () => {
  const message = protocolMismatch(1, 2)
  const { code, output, paths } = await runScripted({
    '/worker/hello': () => ({ status: 426, json: { error: { code: 'protocol_mismatch', message } } }),
  })
  expect({ code, paths }).toEqual({ code: 3, paths: ['/worker/hello'] })
  expect(output).toContain(message)
})

test('decision 8: a welcome of another version is refused by the worker too', async () => {
  const { code, output } = await runScripted({
    '/worker/hello': () => ({ json: { protocol: 7, workerNonce: 'n'.repeat(20) } }),
  })
  expect(code).toBe(3)
  expect(output).toContain('speaks protocol 1, the host speaks protocol 7')
})

test.each([
  ['hello 409', { '/worker/hello': () => ({ status: 409, json: {} }) }, 3],
  ['hello without a nonce', { '/worker/hello': () => ({ json: { protocol: 1 } }) }, 3],
  [
    'a nonce that is no header',
    { '/worker/hello': () => ({ json: { protocol: 1, workerNonce: 'a\nb' } }) },
    3,
  ],
  ['next 403', { '/worker/next': () => ({ status: 403, json: {} }) }, 3],
  ['a turn without an id', { '/worker/next': () => ({ json: {} }) }, 3],
  ['no JSON as turn', { '/worker/next': () => ({ text: 'turn' }) }, 3],
  ['ack 409', { '/worker/ack': () => ({ status: 409, json: {} }) }, 3],
  ['result 409', { '/worker/result': () => ({ status: 409, json: {} }) }, 3],
] as [string, Record<string, HostScript>, number][])('exit codes: %s', async (_, scripts, expected) => {
  expect((await runScripted(scripts)).code).toBe(expected)
})

test('W-52 a turn that the worker cannot read is answered, not dropped', async () => {
  await using host = await openWorkerHost({
    scripts: { '/worker/next': () => ({ json: { ...sampleTurn(), tools: 'none' } }) },
  })
  expect((await runOn(host)).code).toBe(0)
  expect(host.outcome()).toMatchObject({ ok: false, code: 'turn_invalid' })
})

test('exit 2 for wrong arguments', async () => {
  const { code, output } = await run(['--sock', '/x'])
  expect({ code, output }).toEqual({ code: 2, output: 'sealed worker: unknown argument: --sock\n' })
})

test('exit 4 when no host listens', async () => {
  expect((await run(['--socket', '/nowhere/worker.sock'])).code).toBe(4)
})

test('the worker ends when its host is gone: while it waits, and in mid-call', async () => {
  for (const path of ['/worker/next', '/model']) {
    let arrive = () => {}
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve
    })
    const host = await openWorkerHost({
      scripts: {
        [path]: () => {
          arrive()
          return new Promise(() => {})
        },
      },
    })
    const child = start(['--socket', host.socketPath, '--workspace', host.workspace])
    const closed = once(child, 'close')
    await arrived
    await host[Symbol.asyncDispose]()
    expect(await closed, path).toEqual([4, null])
  }
})

test('W-75 a short turn ends at half of its time, with the outcome "deadline" and exit 0', async () => {
  await using host = await openWorkerHost({
    turn: sampleTurn({ remainingMs: 600 }),
    scripts: { '/model': () => new Promise(() => {}) },
  })
  expect((await runOn(host)).code).toBe(0)
  expect(host.outcome()).toMatchObject({ ok: false, code: 'deadline' })
  expect(readFileSync(`${host.workspace}/history.json`, 'utf8')).toContain('ran out')
})

test('W-73 bad workspace files are set aside, told to the model and to the host, and the turn goes on', async () => {
  await using host = await openWorkerHost({})
  writeFileSync(`${host.workspace}/memory.json`, '{"version":1,"entries":[{}]}')
  mkdirSync(`${host.workspace}/history.json`)
  const { code, output } = await runOn(host)
  expect(code).toBe(0)
  expect(host.outcome()).toEqual({ ok: true, text: 'Hi.', quarantined: ['memory.json', 'history.json'] })
  expect(output).toContain('memory.json could not be read and was set aside')
  expect(JSON.stringify(host.bodies('/model')[0])).toContain('starts empty: memory.json, history.json')
  expect(existsSync(`${host.workspace}/memory.json.bad`)).toBe(true)
})

test('a workspace that cannot be written costs the history, not the answer', async () => {
  await using host = await openWorkerHost({})
  const { code, output } = await run(['--socket', host.socketPath, '--workspace', '/proc/self'])
  expect(code).toBe(0)
  expect(host.outcome()).toEqual({ ok: true, text: 'Hi.' })
  expect(output).toContain('history.json could not be written')
})

test('two turns: memory and history of the first are there in the second', async () => {
  await using host = await openWorkerHost({
    scripts: {
      '/model': (_, index) =>
        index === 0
          ? toolCalls(['memory_set', { scope: 'speaker', key: 'tea', text: 'likes green tea' }])
          : completion({ content: `Answer ${index}` }),
    },
  })
  await runOn(host)
  await runOn(host)
  const messages = host.bodies('/model').at(-1)?.messages as { role: string; content: string }[]
  expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
  expect(messages[0]?.content).toContain('likes green tea')
  expect(messages[2]?.content).toBe('Answer 1')
})
