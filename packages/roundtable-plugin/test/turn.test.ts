import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { HostTool } from '@sandbox/broker'
import type { Driver, Worker } from '@sandbox/docker-worker'
import { canary, chatText, chatToolCalls, findSecret, type UpstreamScript } from '@sandbox/testing'
import { expect, test, vi } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { SandboxPluginError } from '../src/errors.ts'
import { ownDir } from './account.ts'
import { ann, bob, kit, workspaces } from './runtime-kit.ts'
import { type TappedDriver, tap } from './tapped-driver.ts'

const codeOf = (error: unknown) => (SandboxPluginError.isInstance(error) ? error.code : String(error))

/** A model service that answers when the test says so. */
function gate(): { script: UpstreamScript; asked: Promise<void>; open: () => void } {
  let open = () => {}
  let seen = () => {}
  const opened = new Promise<void>((done) => (open = done))
  const asked = new Promise<void>((done) => (seen = done))
  const script: UpstreamScript = async () => {
    seen()
    await opened
    return chatText('late')
  }
  return { script, asked, open: () => open() }
}

test('RL-10 a message goes in, an answer comes out, and nothing is left but the workspace', async () => {
  await using own = await kit()
  const reply = await own.runtime.runTurn('fake:1', ann, 'hello')
  expect(reply).toEqual({ ok: true, text: 'hi' })
  expect(own.upstream.seen).toHaveLength(1)
  expect(own.upstream.seen[0]?.headers.authorization).toBe('Bearer sk-test-0123456789abcdef')
  expect(own.turns.map(({ state }) => state)).toEqual([
    'admitted',
    'starting',
    'bound',
    'answering',
    'settling',
    'settled',
  ])
  expect(own.turns.at(-1)).toMatchObject({ ok: true, driver: 'process', channel: 'fake:1', speaker: ann })
  expect(own.turns.map(({ posture }) => posture === undefined).indexOf(false)).toBe(2)
  expect(own.turns.at(-1)?.posture?.interfaces).toContain('lo')
  expect(own.calls.find(({ route }) => route === 'model')?.scope).toEqual({ channel: 'fake:1', speaker: ann })
  expect(own.runDirs()).toEqual([])
  const [workspace] = workspaces(own.roots.workspaceRoot)
  expect(existsSync(join(own.roots.workspaceRoot, workspace ?? '', 'history.json'))).toBe(true)
  expect(own.runtime.busy()).toEqual([])
  expect(own.lines).toEqual([])
})

test('[scope:fixed-at-admission] CS-13 W-04 the speaker is who it was when the turn was admitted', async () => {
  const scopes: unknown[] = []
  await using own = await kit({
    runtime: {
      apiKey: (scope) => {
        scopes.push(scope)
        return 'sk-test-0123456789abcdef'
      },
    },
  })
  const speaker = { ...ann }
  const turn = own.runtime.runTurn('fake:1', speaker, 'hello')
  speaker.id = 'u-mallory'
  await turn
  expect(scopes).toEqual([{ channel: 'fake:1', speaker: ann }])
})

test('CS-21 W-09 the principalId reaches getters and tools, and neither the worker nor the model', async () => {
  const speaker = { ...ann, principalId: canary() }
  const seen: unknown[] = []
  using taps = ownDir()
  let tapped: TappedDriver | undefined
  const who: HostTool = {
    name: 'who',
    description: 'Says who asks.',
    parameters: { type: 'object' },
    execute: (_, context) => `call ${seen.push(context.speaker)}`,
  }
  await using own = await kit({
    script: ({ body }) =>
      body.includes('call 2') ? chatText('done') : chatToolCalls([{ name: 'host_who', input: {} }]),
    wrap: (driver) => {
      tapped = tap(driver, taps.path)
      return tapped
    },
    runtime: {
      tools: [who],
      apiKey: (scope) => {
        seen.push(scope.speaker)
        return 'sk-test-0123456789abcdef'
      },
    },
  })
  expect(await own.runtime.runTurn('fake:1', speaker, 'hello')).toEqual({ ok: true, text: 'done' })
  expect(seen).toEqual([speaker, speaker, speaker])
  expect(own.calls.find(({ route }) => route === 'tool')?.scope?.speaker).toEqual(speaker)
  expect(own.turns.map((event) => event.speaker)).toEqual(own.turns.map(() => ann))
  const traffic = Buffer.concat([...(tapped?.inward ?? []), ...(tapped?.outward ?? [])])
  expect(traffic.includes(ann.id)).toBe(true)
  const asked = own.upstream.seen.map(({ body }) => body).join('\n')
  for (const bytes of [traffic, asked, (tapped?.outputs ?? []).join('\n')]) {
    expect(findSecret(bytes, speaker.principalId)).toEqual([])
  }
})

test('RL-08 RL-09 one turn at a time in a channel, any number of channels at once', async () => {
  const { script, asked, open } = gate()
  await using own = await kit({ script })
  const first = own.runtime.runTurn('fake:1', ann, 'hello')
  await expect(own.runtime.runTurn('fake:1', bob, 'me too').catch(codeOf)).resolves.toBe('busy')
  const second = own.runtime.runTurn('fake:2', bob, 'hello')
  await asked
  expect(own.runtime.busy()).toEqual(['fake:1', 'fake:2'])
  open()
  expect(await Promise.all([first, second])).toEqual([
    { ok: true, text: 'late' },
    { ok: true, text: 'late' },
  ])
  await expect(own.runtime.runTurn('fake:1', ann, 'x'.repeat(32_001)).catch(codeOf)).resolves.toBe(
    'input_invalid',
  )
})

test('RL-12 a reset is for one turn; one asked during a turn is for the next', async () => {
  await using own = await kit({
    script: ({ body }) => {
      if (body.includes('second')) own.runtime.startFresh('fake:1')
      return chatText('noted')
    },
  })
  const remembers = async (text: string) => {
    await own.runtime.runTurn('fake:1', ann, text)
    return own.upstream.seen.at(-1)?.body.includes('noted') === true
  }
  const seen = [
    await remembers('first'),
    await remembers('second'),
    await remembers('third'),
    await remembers('fourth'),
  ]
  expect(seen).toEqual([false, true, false, true])
})

test('RL-12 a failed turn keeps the reset', async () => {
  let broken = false
  await using own = await kit({
    script: (_request, response) => (broken ? void response.writeHead(500).end() : chatText('noted')),
  })
  await own.runtime.runTurn('fake:1', ann, 'first')
  own.runtime.startFresh('fake:1')
  broken = true
  expect(await own.runtime.runTurn('fake:1', ann, 'second')).toMatchObject({ ok: false, category: 'broker' })
  broken = false
  await own.runtime.runTurn('fake:1', ann, 'third')
  expect(own.upstream.seen.at(-1)?.body).not.toContain('noted')
})

test('CS-09 T40 no key for the speaker: the chat hears it, and the model service saw nothing', async () => {
  await using own = await kit({ runtime: { apiKey: () => undefined, keyContact: 'Olga' } })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({
    ok: false,
    category: 'credential',
    text: 'No key is set for you in this channel, so I cannot answer. Please ask Olga for one.',
  })
  expect(own.upstream.seen).toEqual([])
  expect(own.turns.at(-1)).toMatchObject({ state: 'settled', ok: false, category: 'credential' })
  expect(own.runDirs()).toEqual([])
})

test('T36 T40 no credit for the speaker: the chat hears it, and no key is asked for', async () => {
  const asked: string[] = []
  const credit = {
    reserve: ({ scope }: { scope: { speaker: { id: string } } }) => {
      asked.push(scope.speaker.id)
      return { granted: false as const, resetsAt: new Date(Date.now() + 5.5 * 3_600_000) }
    },
  }
  const receipts: unknown[] = []
  const onReceipt = (receipt: unknown) => void receipts.push(receipt)
  await using own = await kit({ runtime: { credit, onReceipt, keyContact: 'Olga' } })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({
    ok: false,
    category: 'credential',
    text: 'There is no credit left for you in this channel. Please try again in 6 h, or ask Olga for more.',
  })
  expect(new Set(asked)).toEqual(new Set([ann.id]))
  expect([own.upstream.seen, receipts]).toEqual([[], []])
})

test.each([
  ['upstream', { upstream: () => Promise.reject(new TypeError('no list')) }, 'endpoint_invalid'],
  ['upstream that picks no service', { upstream: () => ({ modelUrl: 'ftp://x' }) }, 'endpoint_invalid'],
  ['credit', { credit: { reserve: () => Promise.reject(new TypeError('no accounts')) } }, 'credit_error'],
])(
  'W-79 T40 %s of the operator fails: the chat hears whom to tell, and the log what failed',
  async (_, runtime, reason) => {
    await using own = await kit({ runtime: runtime as object })
    expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({
      ok: false,
      category: 'host',
      text: expect.stringMatching(/tell the owner of this bot/),
    })
    expect(own.lines).toContainEqual({
      level: 'error',
      message: 'turn failed',
      fields: expect.objectContaining({ category: 'host', cause: expect.stringContaining(reason) }),
    })
  },
)

test('an audit trail: one receipt per credential', async () => {
  const receipts: unknown[] = []
  await using own = await kit({ runtime: { onReceipt: (receipt) => void receipts.push(receipt) } })
  expect((await own.runtime.runTurn('fake:1', ann, 'hello')).ok).toBe(true)
  expect(receipts).toMatchObject([{ channel: 'fake:1', speakerId: ann.id, outcome: 'ok' }])
})

test.each([
  [401, 'credential', /refused the key that is set for you/],
  [500, 'broker', /model service could not be reached/],
  [429, 'broker', /has too much to do right now. Please try again in 30 s/],
] as const)('W-79 the model service answers %i: %s', async (status, category, text) => {
  await using own = await kit({
    script: (_request, response) =>
      void response.writeHead(status, { 'retry-after': '30' }).end('{"error":"secret words"}'),
  })
  const reply = await own.runtime.runTurn('fake:1', ann, 'hello')
  expect(reply).toMatchObject({ ok: false, category, text: expect.stringMatching(text) })
  expect(JSON.stringify(own.lines)).not.toContain('secret words')
})

test('T40 a failure is told in the words of the operator, where there are some', async () => {
  const failures: unknown[] = []
  await using own = await kit({
    runtime: {
      apiKey: () => undefined,
      words: (failure) => {
        failures.push(failure)
        return `${failure.speaker.name}, bring a key.`
      },
    },
  })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ text: 'Ann, bring a key.' })
  expect(failures).toEqual([{ category: 'credential', trouble: 'missing', channel: 'fake:1', speaker: ann }])
})

test('RL-13 a start over that no turn has used is forgotten with the host; the history is not', async () => {
  await using own = await kit()
  await own.runtime.runTurn('fake:1', ann, 'first')
  own.runtime.startFresh('fake:1')
  await own.runtime.dispose()
  await using again = new SandboxRuntime(own.options)
  await again.runTurn('fake:1', ann, 'second')
  expect(own.upstream.seen.at(-1)?.body).toContain('first')
})

test('RL-14 stop ends the running turn of its channel only, with its call to the model', async () => {
  const { script, asked, open } = gate()
  let gone = () => {}
  const left = new Promise<void>((done) => (gone = done))
  await using own = await kit({
    script: (request, response, incoming) => {
      response.on('close', () => gone())
      return script(request, response, incoming)
    },
  })
  expect(own.runtime.stop('fake:1')).toBe(false)
  const turn = own.runtime.runTurn('fake:1', ann, 'hello')
  await asked
  expect([own.runtime.stop('fake:2'), own.runtime.stop('fake:1'), own.runtime.stop('fake:1')]).toEqual([
    false,
    true,
    false,
  ])
  expect(own.runtime.busy()).toEqual(['fake:1'])
  expect(await turn).toEqual({ ok: false, category: 'stopped', text: 'Stopped.' })
  await left
  expect([own.runtime.busy(), own.runDirs()]).toEqual([[], []])
  open()
})

test('RL-15 dispose ends every turn, waits for it, and takes no more; the run root is free again', async () => {
  const { script, asked, open } = gate()
  await using own = await kit({ script })
  const turn = own.runtime.runTurn('fake:1', ann, 'hello')
  await asked
  await own.runtime.dispose()
  expect([own.runtime.busy(), own.runDirs()]).toEqual([[], []])
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  await expect(own.runtime.runTurn('fake:1', ann, 'hello').catch(codeOf)).resolves.toBe('closed')
  expect(readdirSync(own.roots.runRoot).filter((name) => name.endsWith('.lock'))).toEqual([])
  open()
})

test('a turn over its deadline ends, although its guest ignores SIGTERM', async () => {
  await using own = await kit({
    guest: `process.on('SIGTERM', () => {}); const nonce = await hello(); await take(nonce); setInterval(() => {}, 1000)`,
    runtime: { turnTimeoutMs: 1_500 },
  })
  const reply = await own.runtime.runTurn('fake:1', ann, 'hello')
  expect(reply).toMatchObject({ ok: false, category: 'timeout' })
  expect([own.runtime.busy(), own.runDirs()]).toEqual([[], []])
})

test.each([
  ['ends at once', 'process.exit(7)', 'worker', /exit code 7/],
  ['is killed', `process.kill(process.pid, 'SIGKILL')`, 'container', /killed, SIGKILL/],
  [
    'speaks another protocol',
    'await hello(99); setInterval(() => {}, 1000)',
    'container',
    /protocol 99.*sandbox-worker build/,
  ],
  ['says hello twice', `await hello(); await hello(); setInterval(() => {}, 1000)`, 'worker', /second_hello/],
  [
    'answers with nothing',
    `const n = await hello(); await post(n, await take(n), { ok: true, text: ' ' })`,
    'worker',
    /empty answer/,
  ],
  [
    'claims that time is over',
    `const n = await hello(); await post(n, await take(n), { ok: false, text: 'PAY ME', code: 'deadline' })`,
    'worker',
    /worker code deadline/,
  ],
] as const)('W-79 a guest that %s', async (_what, guest, category, cause) => {
  await using own = await kit({ guest: `console.error('GUEST TEXT'); ${guest}` })
  const reply = await own.runtime.runTurn('fake:1', ann, 'hello')
  expect(reply).toMatchObject({ ok: false, category })
  expect(reply.text).not.toContain('PAY ME')
  expect(own.turns.at(-1)?.cause).toMatch(cause)
  // Error lines may be posted where people read: no guest text in them.
  expect(JSON.stringify(own.lines.filter(({ level }) => level === 'error'))).not.toContain('GUEST TEXT')
  expect(own.runDirs()).toEqual([])
})

test('W-62 what a failed worker wrote is in the log', async () => {
  await using own = await kit({ guest: `console.error('it broke here'); process.exit(7)` })
  await own.runtime.runTurn('fake:1', ann, 'hello')
  expect(own.lines.find(({ message }) => message === 'what the worker said')?.fields).toMatchObject({
    output: expect.stringContaining('it broke here'),
  })
})

/** A driver whose members can be replaced one by one. */
function plain(driver: Driver): Driver {
  return {
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    start: (spec, signal) => driver.start(spec, signal),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
  }
}

function slowTool(): { tool: HostTool; aborted: Promise<void> } {
  let fired = () => {}
  const aborted = new Promise<void>((done) => (fired = done))
  const tool: HostTool = {
    name: 'slow',
    description: 'Takes for ever.',
    parameters: { type: 'object', properties: {} },
    execute: (_input, { signal }) =>
      new Promise<string>((done) => {
        const end = () => {
          fired()
          done('')
        }
        if (signal.aborted) end()
        else signal.addEventListener('abort', end)
      }),
  }
  return { tool, aborted }
}

test('RL-16 a host tool that the worker left behind is cancelled when the turn is over', async () => {
  const { tool, aborted } = slowTool()
  await using own = await kit({
    guest: `
      const n = await hello(); const turn = await take(n)
      spend(turn, '/tools/slow', {}).catch(() => {})
      await new Promise((done) => setTimeout(done, 200))
      await post(n, turn, { ok: true, text: 'done' })`,
    runtime: { tools: [tool] },
  })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'done' })
  await aborted
})

test('host tools run for the speaker of the turn', async () => {
  const seen: unknown[] = []
  const tool: HostTool = {
    name: 'who',
    description: 'Who speaks.',
    parameters: { type: 'object', properties: {} },
    execute: (_input, { channel, speaker }) => {
      seen.push({ channel, speaker })
      return 'you'
    },
  }
  let asked = 0
  await using own = await kit({
    script: () => {
      asked += 1
      return asked === 1 ? chatToolCalls([{ name: 'host_who', input: {} }]) : chatText('done')
    },
    runtime: { tools: [tool] },
  })
  expect(await own.runtime.runTurn('fake:1', bob, 'hello')).toEqual({ ok: true, text: 'done' })
  expect(seen).toEqual([{ channel: 'fake:1', speaker: bob }])
})

test('a worker that differs from its profile gets no turn, and its own words stay out of error lines', async () => {
  await using own = await kit({
    wrap: (driver) =>
      Object.assign(Object.create(driver), { ...plain(driver), verify: () => ['It has the mount PAY-ME.'] }),
  })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({
    ok: false,
    category: 'container',
  })
  expect(own.upstream.seen).toEqual([])
  expect(own.turns.map(({ state }) => state)).not.toContain('bound')
  expect(JSON.stringify(own.lines.filter(({ level }) => level === 'error'))).not.toContain('PAY-ME')
  expect(JSON.stringify(own.lines.filter(({ level }) => level === 'warn'))).toContain('PAY-ME')
})

test('RL-17 W-71 decision 7: a worker that cannot be removed fails the turn, keeps the reset used up, and blocks the channel until it is gone', async () => {
  let stuck = true
  let workers = 0
  const hold = (worker: Worker): Worker => ({
    id: worker.id,
    workerId: worker.workerId,
    exited: worker.exited,
    output: () => worker.output(),
    remove: async () => {
      if (stuck) throw new TypeError('engine says no')
      await worker.remove()
    },
  })
  await using own = await kit({
    wrap: (driver) => ({
      ...plain(driver),
      start: async (spec, signal) => {
        workers += 1
        return hold(await driver.start(spec, signal))
      },
    }),
  })
  own.runtime.startFresh('fake:1')
  await expect(own.runtime.runTurn('fake:1', ann, 'first')).rejects.toMatchObject({
    code: 'cleanup_failed',
    answer: 'hi',
  })
  expect([own.runDirs(), workers]).toEqual([[], 1])
  expect(own.lines.map(({ level }) => level)).toEqual(['error'])
  expect(await own.runtime.runTurn('fake:1', ann, 'second')).toMatchObject({
    ok: false,
    category: 'container',
  })
  expect(workers).toBe(1)
  stuck = false
  expect(await own.runtime.runTurn('fake:1', ann, 'third')).toEqual({ ok: true, text: 'hi' })
  expect(own.upstream.seen.at(-1)?.body).toContain('first')
})

test('an engine that is not there fails the turn, and the next one looks again', async () => {
  let down = true
  await using own = await kit({
    wrap: (driver) => ({
      ...plain(driver),
      check: async (signal) => {
        if (down) throw new TypeError('no engine here')
        await driver.check(signal)
      },
    }),
  })
  await expect(own.runtime.start()).rejects.toThrow('no engine here')
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({
    ok: false,
    category: 'container',
  })
  expect(own.turns.at(-1)?.cause).toMatch(/no engine here/)
  down = false
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ ok: true })
})

test('once a minute, what a dead turn left is looked for again, and running turns are left alone', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const { script, asked, open } = gate()
    await using own = await kit({ script })
    const turn = own.runtime.runTurn('fake:1', ann, 'hello')
    await asked
    mkdirSync(join(own.roots.runRoot, '00000000-00000000'))
    vi.advanceTimersByTime(60_000)
    await vi.waitFor(() => expect(own.runDirs()).toHaveLength(1))
    open()
    expect(await turn).toEqual({ ok: true, text: 'late' })
    expect(own.lines.map(({ message }) => message)).toEqual(['removed what was left of earlier turns'])
  } finally {
    vi.useRealTimers()
  }
})

test('listeners that throw do not touch the turn', async () => {
  const boom = () => {
    throw new TypeError('listener')
  }
  await using own = await kit({ runtime: { onCall: boom, onTurn: boom } })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
})
