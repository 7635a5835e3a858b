import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SEALED_PLACEHOLDER } from '@sandbox/protocol'
import { findSecret } from '@sandbox/testing'
import { describe, expect, test, vi } from 'vitest'
import { PrecheckError, precheckScriptRunner } from '../src/prechecks/index.ts'
import { ownDir, userOptions } from './account.ts'
import { fired, noting, precheckKit } from './precheck-kit.ts'
import { type TappedDriver, tap } from './tapped-driver.ts'

/** Looks for tea in the notes. */
const FINDS = `export default async ({ mcp, ...rest }) => {
  const text = await mcp.call('notes', 'find', { what: 'tea' })
  return { wake: true, context: JSON.stringify({ text, rest }) }
}`
const FOREVER = 'export default () => { console.log("started"); for (;;); }'

/** How the run of a script fails. */
async function failure(running: Promise<unknown>): Promise<string> {
  return running.then(
    (result) => expect.fail(`it came to ${JSON.stringify(result)}`),
    (error: unknown) => {
      expect(error).toBeInstanceOf(PrecheckError)
      return (error as PrecheckError).message
    },
  )
}

describe('one run', () => {
  test('PC-10 PC-11 a script calls its tool, wakes the turn, and leaves nothing', async () => {
    const scopes: unknown[] = []
    const speakers: unknown[] = []
    await using kit = await precheckKit({
      runner: {
        speaker: (...asked) => {
          speakers.push(asked)
          return { id: 'u-ann', name: 'Ann' }
        },
        grant: (scope) => {
          scopes.push(scope)
          return [kit.notes]
        },
      },
    })
    const result = await kit.runner.run(FINDS, fired())
    expect(result).toMatchObject({ wake: true })
    expect(JSON.parse((result as { context: string }).context)).toEqual({
      text: 'found tea',
      rest: {
        firedAt: '2026-03-01T08:00:00.000Z',
        timeZone: 'Europe/Berlin',
        today: '2026-03-01',
        schedule: { id: '7', title: 'Morning' },
      },
    })
    const scope = { channel: 'fake:1', target: 'agent', tier: 'member' }
    expect([scopes, speakers]).toEqual([[scope], [[scope, { id: '7' }]]])
    const mcp = kit.calls.filter(({ route }) => route === 'mcp')
    expect(mcp.map(({ name, reason, scope: of }) => [name, reason, of?.speaker.id])).toEqual([
      ['notes/find', 'ok', 'u-ann'],
    ])
    expect([kit.left(), kit.lines]).toEqual([[], []])
  })

  test('PC-09 the worker has directories of its own and a workspace that is read-only', async () => {
    await using kit = await precheckKit()
    const script = 'export default () => ({ wake: false })'
    expect(await kit.runner.run(script, fired())).toEqual({ wake: false })
    expect(await kit.runner.run(script.replace('false', `false, note: 'n'`), fired())).toEqual({
      wake: false,
      note: 'n',
    })
    const [first, second] = kit.started
    expect([first?.workspaceReadOnly, second?.workspaceReadOnly]).toEqual([true, true])
    expect(first?.workspaceDir).not.toBe(second?.workspaceDir)
  })

  test('W-91 PC-04 runs at once are apart', async () => {
    await using kit = await precheckKit()
    const told = (n: number) =>
      kit.runner.run(`export default () => ({ wake: false, note: '${n}' })`, fired())
    expect(await Promise.all([1, 2, 3].map(told))).toEqual(
      ['1', '2', '3'].map((note) => ({ wake: false, note })),
    )
    expect(kit.left()).toEqual([])
  })

  test('secret:not-in-guest-bytes the token of a tool is nowhere in what the worker sees or says', async () => {
    using dir = ownDir()
    let tapped: TappedDriver | undefined
    await using kit = await precheckKit({
      wrap: (driver) => {
        tapped = tap(driver, dir.path)
        return tapped
      },
    })
    const script = FINDS.replace('const text', 'console.log(process.env); const text')
    const result = await kit.runner.run(script, fired())
    expect(kit.server.seen.some(({ headers }) => headers.authorization === `Bearer ${kit.token}`)).toBe(true)
    const { inward = [], outward = [], outputs = [] } = tapped ?? {}
    expect(Buffer.concat(inward).toString()).toContain('found tea')
    const told = JSON.stringify([result, outputs, kit.lines, kit.calls])
    for (const bytes of [Buffer.concat(inward), Buffer.concat(outward), told]) {
      expect(findSecret(bytes, kit.token)).toEqual([])
    }
  })
})

describe('PC-02 PC-12 what it may call', () => {
  test.each<[string, object, RegExp]>([
    ['approved and not granted', { tools: [{ server: 'mail', tool: 'send' }] }, /may call nothing$/],
    ['granted and not approved', { tools: [{ server: 'notes', tool: 'erase' }] }, /may call notes\/erase$/],
    ['approved with nothing', { tools: [] }, /may call nothing$/],
  ])('%s', async (_, changes, words) => {
    await using kit = await precheckKit()
    expect(await failure(kit.runner.run(FINDS, fired(changes)))).toMatch(words)
    expect(kit.server.seen).toEqual([])
  })

  test('PC-04 the calls of a run are counted', async () => {
    await using kit = await precheckKit({ runner: { maxCalls: 1 } })
    const twice = FINDS.replace('const text', `await mcp.call('notes', 'find', {}); const text`)
    expect(await failure(kit.runner.run(twice, fired()))).toBe(
      'notes/find: the calls of this run are used up',
    )
  })
})

describe('PC-14 what wakes the turn', () => {
  test('the words of the script, without anything like a credential', async () => {
    await using kit = await precheckKit()
    const key = 'sk-proj-0123456789abcdefghijklmnop'
    const words = await failure(
      kit.runner.run(`export default () => { throw new Error('no luck with ${key}') }`, fired()),
    )
    expect(words).toMatch(/^no luck with /)
    expect(words).not.toContain('0123456789')
  })

  test('a script that ends its process', async () => {
    await using kit = await precheckKit()
    const words = await failure(kit.runner.run('export default () => process.exit(0)', fired()))
    expect(words).toBe('The script ended its process before it had answered.')
    expect([kit.left(), kit.lines.map(({ level }) => level)]).toEqual([[], ['warn']])
  })

  test('PC-14 a script that speaks to the host as its worker does: no fault of the host', async () => {
    await using kit = await precheckKit({ runner: { timeoutMs: 5_000 } })
    const hello = `import { connect } from 'node:net'
      export default () => new Promise(() => {
        const path = process.argv[process.argv.indexOf('--socket') + 1]
        const auth = 'authorization: Bearer ${SEALED_PLACEHOLDER}'
        const head = ['POST /worker/hello HTTP/1.1', 'host: broker', auth, 'content-length: 2']
        connect(path).write([...head, 'content-type: application/json', '', '{}'].join('\\r\\n'))
      })`
    expect(await failure(kit.runner.run(hello, fired()))).toBe(
      'The script spoke to the host in the place of its worker.',
    )
    expect([kit.left(), kit.lines.map(({ level }) => level)]).toEqual([[], ['warn']])
  })

  test('W-93 a script that never ends is killed when its time is over', async () => {
    await using kit = await precheckKit({ runner: { timeoutMs: 3_000 } })
    expect(await failure(kit.runner.run(FOREVER, fired()))).toBe('The script was not done within 3 s.')
    expect([kit.started.length, kit.left()]).toEqual([1, []])
  })

  test('a host that gives the run up', async () => {
    const over = new AbortController()
    await using kit = await precheckKit({
      runner: { onCall: ({ name }) => name === 'ack' && over.abort() },
    })
    expect(await failure(kit.runner.run(FOREVER, fired({ signal: over.signal })))).toBe(
      'The script was stopped.',
    )
    expect([kit.started.length, kit.left()]).toEqual([1, []])
    const again = kit.runner.run(FINDS, fired({ signal: over.signal }))
    expect(await failure(again)).toBe('The script was stopped.')
    expect(kit.started).toHaveLength(1)
  })

  test.each<[string, object, RegExp]>([
    ['a long script', { script: 'x'.repeat(8_001) }, /^The script has 8001 characters, 8000 at most\.$/],
    ['no script', { script: '' }, /empty, or its schedule/],
    ['no date', { firedAt: new Date(Number.NaN) }, /empty, or its schedule/],
    ['another kind of day', { today: 'today' }, /empty, or its schedule/],
  ])('W-93 %s starts nothing', async (_, changes, words) => {
    await using kit = await precheckKit()
    const { script = FINDS, ...more } = changes as { script?: string }
    expect(await failure(kit.runner.run(script, fired(more)))).toMatch(words)
    expect(kit.started).toEqual([])
  })

  test('a hook of the operator that fails: words without its own', async () => {
    const fails = () => {
      throw new TypeError('the table at /srv/grants is gone')
    }
    await using one = await precheckKit({ runner: { grant: fails } })
    const granting = 'The tools of this schedule could not be granted.'
    expect(await failure(one.runner.run(FINDS, fired()))).toBe(granting)
    expect(await failure(one.runner.describe({ channel: 'fake:1', target: 'agent' }))).toBe(granting)
    expect(
      one.lines.map(({ level, fields }) => [level, String(fields.cause).includes('/srv/grants')]),
    ).toEqual([
      ['error', true],
      ['error', true],
    ])
    await using two = await precheckKit({ runner: { speaker: fails } })
    expect(await failure(two.runner.run(FINDS, fired()))).toMatch(/^Nobody could be found/)
    expect([one.started, two.started, one.left(), two.left()]).toEqual([[], [], [], []])
  })

  test('a worker that cannot be started, or is not what its driver promises', async () => {
    await using one = await precheckKit({
      change: { start: () => Promise.reject(new TypeError('no engine at /run/x')) },
    })
    await using two = await precheckKit({ change: { verify: () => ['The worker has routes.'] } })
    for (const kit of [one, two]) {
      expect(await failure(kit.runner.run(FINDS, fired()))).toBe(
        'No safe place to run the script could be started.',
      )
      expect(kit.lines[0]?.level).toBe('error')
      expect(kit.left()).toEqual([])
    }
  })

  test('W-93 an engine that hangs holds the answer up for a moment only', async () => {
    const hung = Promise.withResolvers<never>()
    const asked = Promise.withResolvers<void>()
    const start = () => {
      asked.resolve()
      return hung.promise
    }
    await using kit = await precheckKit({ change: { start } })
    const over = new AbortController()
    const running = failure(kit.runner.run(FINDS, fired({ signal: over.signal })))
    await asked.promise
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      over.abort()
      await vi.advanceTimersByTimeAsync(5_000)
    } finally {
      vi.useRealTimers()
    }
    expect(await running).toBe('The script was stopped.')
    expect(kit.left()).toHaveLength(1)
    hung.reject(new TypeError('gone'))
    await kit.runner.dispose()
    expect(kit.left()).toEqual([])
  })

  test('PC-14 what a script decided is not lost to an engine that hangs when its worker is removed', async () => {
    const removal = Promise.withResolvers<void>()
    const asked = Promise.withResolvers<void>()
    await using kit = await precheckKit({
      wrap: (driver) => ({
        ...noting(driver, []),
        async start(spec, signal) {
          const worker = await driver.start(spec, signal)
          const remove = worker.remove.bind(worker)
          return Object.assign(worker, {
            async remove() {
              asked.resolve()
              await removal.promise
              await remove()
            },
          })
        },
      }),
    })
    const running = kit.runner.run('export default () => ({ wake: false, note: "calm" })', fired())
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      await asked.promise
      await vi.advanceTimersByTimeAsync(5_000)
      vi.useRealTimers()
      expect(await running).toEqual({ wake: false, note: 'calm' })
    } finally {
      vi.useRealTimers()
      removal.resolve()
    }
    await kit.runner.dispose()
    expect(kit.left()).toEqual([])
  })
})

describe('the runner', () => {
  test('PC-15 describe tells the contract and the tools; toolName is the tool’s own, or the operator’s', async () => {
    await using kit = await precheckKit({ runner: { maxCalls: 3, timeoutMs: 30_000 } })
    const text = await kit.runner.describe({ channel: 'fake:1', target: 'agent' })
    for (const part of [
      '8000 characters',
      '{ wake: false',
      'At most 3 calls',
      '30 s',
      'notes/find, notes/erase',
    ]) {
      expect(text).toContain(part)
    }
    expect(kit.runner.toolName('notes', 'find')).toBe('find')
    await using other = await precheckKit({
      runner: { grant: () => [], toolName: (server, tool) => `${server}_${tool}` },
    })
    expect(other.runner.toolName('notes', 'find')).toBe('notes_find')
    expect(await other.runner.describe({ channel: 'fake:1', target: 'agent' })).toMatch(
      /There is no tool that it may call\.$/,
    )
  })

  test('PC-09 a run more than may be at once waits, one more than may wait is refused', async () => {
    const acked = Promise.withResolvers<void>()
    await using kit = await precheckKit({
      runner: {
        maxRunning: 1,
        maxQueued: 1,
        timeoutMs: 5_000,
        onCall: ({ name }) => name === 'ack' && acked.resolve(),
      },
    })
    const over = new AbortController()
    const first = failure(kit.runner.run(FOREVER, fired({ signal: over.signal })))
    await acked.promise
    const second = kit.runner.run('export default () => ({ wake: false })', fired())
    const third = kit.runner.run(FINDS, fired())
    expect(await failure(third)).toBe('Too many scripts run already: this one was not begun.')
    expect(kit.started).toHaveLength(1)
    over.abort()
    expect(await first).toBe('The script was stopped.')
    expect(await second).toEqual({ wake: false })
    expect([kit.started.length, kit.left()]).toEqual([2, []])
  })

  test('PC-09 a run that gets no place in time is told so; dispose ends one that waits', async () => {
    await using kit = await precheckKit({ runner: { maxRunning: 1, timeoutMs: 2_000 } })
    const holder = failure(kit.runner.run(FOREVER, fired()))
    const late = failure(kit.runner.run(FINDS, fired()))
    expect(await holder).toBe('The script was not done within 2 s.')
    expect(await late).toBe('Other scripts left no place for this one within 2 s.')
    const again = failure(kit.runner.run(FOREVER, fired()))
    const waits = failure(kit.runner.run(FINDS, fired()))
    await kit.runner.dispose()
    expect([await again, await waits]).toEqual(['The script was stopped.', 'The script was stopped.'])
    expect(kit.left()).toEqual([])
  })

  test('its time is what the host reads', async () => {
    await using kit = await precheckKit({ runner: { timeoutMs: 5_000 } })
    expect(kit.runner.timeoutMs).toBe(5_000)
  })

  test('dispose ends what runs, takes no more, and gives the root back', async () => {
    const acked = Promise.withResolvers<void>()
    await using kit = await precheckKit({
      runner: { onCall: ({ name }) => name === 'ack' && acked.resolve() },
    })
    expect(() => precheckScriptRunner(kit.options)).toThrow(/is used by another host/)
    const running = failure(kit.runner.run(FOREVER, fired()))
    await acked.promise
    await kit.runner.dispose()
    expect(await running).toBe('The script was stopped.')
    expect(await failure(kit.runner.run(FINDS, fired()))).toBe('The host is stopping.')
    expect(kit.left()).toEqual([])
    await precheckScriptRunner(kit.options).dispose()
  })

  test('W-66 what an earlier host left is removed by the first run', async () => {
    await using kit = await precheckKit()
    const dead = join(kit.options.runRoot, '0123456789abcdef')
    mkdirSync(join(dead, 'run'), { recursive: true })
    await kit.runner.run('export default () => ({ wake: false })', fired())
    expect(kit.left()).toEqual([])
    expect(kit.lines).toMatchObject([{ level: 'warn', fields: { directories: ['0123456789abcdef'] } }])
  })

  test.each<[string, object]>([
    ['grant', { grant: undefined }],
    ['speaker', { speaker: 'u-ann' }],
    ['timeoutMs', { timeoutMs: 999 }],
    ['maxCalls', { maxCalls: 101 }],
    ['maxRunning', { maxRunning: 0 }],
    ['maxQueued', { maxQueued: -1 }],
    ['driver', { driver: 'other' }],
    ['runRoot', { runRoot: 'relative' }],
    ['image', { driver: 'docker', image: '' }],
  ])('W-93 the option %s is checked before any script', (option, changes) => {
    using dir = ownDir()
    const options = { runRoot: join(dir.path, 'r'), grant: () => [], driver: 'process', ...userOptions }
    expect(() => precheckScriptRunner({ ...options, ...changes } as never)).toThrow(new RegExp(`^${option}`))
  })

  test('W-93 a run root that is open to others is refused', () => {
    using dir = ownDir()
    const runRoot = join(dir.path, 'r')
    mkdirSync(runRoot, { mode: 0o755 })
    expect(() =>
      precheckScriptRunner({ runRoot, grant: () => [], driver: 'process', ...userOptions }),
    ).toThrow(/^runRoot /)
  })
})
