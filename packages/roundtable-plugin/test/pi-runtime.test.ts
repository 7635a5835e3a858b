import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CallEvent } from '@sandbox/broker'
import { PiSandboxBroker } from '@sandbox/pi-broker'
import type { PiOutcome, PiTurn } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import { AgentRunError } from '../src/errors.ts'
import type { PiRuntimePorts } from '../src/runtime/pi-ports.ts'
import { POSTURE, type WireGuest } from './pi-guest.ts'
import { piKit, until } from './pi-kit.ts'

const never = () => new Promise<PiOutcome>(() => {})
const said = ({ text }: { text: string }): PiOutcome => ({ ok: true, text, files: [] })
const FAILED: PiOutcome = { ok: false, code: 'model_failed', error: 'as asked' }
const texts = (lines: { message: string }[]) => lines.map(({ message }) => message)

test('PR-09 PR-14 PR-21 turns of one channel run on one worker, each as its own speaker', async () => {
  await using kit = piKit()
  expect(await kit.say('one')).toEqual({ ok: true, text: 'u-ann: one', files: [], leftOut: 0 })
  expect(await kit.say('two', { speaker: { id: 'u-bob', name: 'Bob' } })).toMatchObject({
    text: 'u-bob: two',
  })
  expect(kit.driver.guests).toHaveLength(1)
  const [guest] = kit.driver.guests
  expect(guest?.turns.map(({ nonce }) => nonce).length).toBe(
    new Set(guest?.turns.map(({ nonce }) => nonce)).size,
  )
  const bound = kit.turns.filter(({ state }) => state === 'bound')
  expect(bound.map(({ warm }) => warm)).toEqual([false, true])
  expect(bound.map(({ posture }) => posture?.runtime)).toEqual([POSTURE.runtime, POSTURE.runtime])
  expect(kit.turns.map(({ state }) => state).slice(0, 6)).toEqual([
    'admitted',
    'starting',
    'bound',
    'answering',
    'settling',
    'settled',
  ])
})

test('PR-09 a channel that is busy says so, and another one is not', async () => {
  await using kit = piKit({ script: (turn) => (turn.text === 'one' ? never() : said(turn)) })
  const first = kit.say('one')
  expect(await kit.say('two')).toMatchObject({ ok: false, category: 'busy', text: /Channel is busy/ })
  await until(() => kit.driver.guests[0]?.turns.length === 1)
  expect(await kit.say('there', { channel: 'fake:2' })).toMatchObject({ ok: true, text: 'there' })
  expect(kit.runtime.busy()).toEqual(['fake:1'])
  expect(await kit.runtime.stop('fake:1')).toBe(true)
  expect(await first).toMatchObject({ ok: false, category: 'stopped', text: 'Stopped.' })
})

test('PR-09 a request of a wrong shape is refused in words, and the channel stays free', async () => {
  await using kit = piKit()
  for (const wrong of [{ signal: {} as AbortSignal }, { onProgress: 5 as never }]) {
    expect(await kit.say('one', wrong)).toMatchObject({ ok: false, category: 'input' })
  }
  expect(await kit.runtime.runTurn(null as never)).toMatchObject({ ok: false, category: 'input' })
  expect(await kit.say('two')).toMatchObject({ ok: true })
})

test('PR-10 PR-15 what cannot be taken is told in words, and nothing is started', async () => {
  await using kit = piKit()
  const long = await kit.say('x'.repeat(100_001))
  expect(long).toMatchObject({ ok: false, category: 'input', text: /text has at most 100000 characters/ })
  expect(await kit.say('x', { profile: 'nobody' })).toMatchObject({
    category: 'input',
    text: /profile that does not exist/,
  })
  expect(
    await kit.say('x', { channel: 'fake:1' as never, images: [{ mimeType: 'a', data: '' }] }),
  ).toMatchObject({
    category: 'input',
  })
  expect(!long.ok && long.error).toBeInstanceOf(AgentRunError)
  expect(kit.driver.guests).toEqual([])
})

test('PR-04 a channel that is an alias of another is refused by every operation', async () => {
  await using kit = piKit()
  await kit.say('hello', { channel: 'fake:a_b' })
  const alias = 'fake:a b' as const
  const refused = await kit.say('hello', { channel: alias })
  expect(refused).toMatchObject({ ok: false, category: 'input', text: /alias/ })
  expect(!refused.ok && refused.text).not.toMatch(/a_b|\//)
  expect(kit.lines.at(-1)).toMatchObject({
    message: 'sandbox turn refused',
    fields: { cause: /alias of fake:a_b/ },
  })
  await expect(kit.runtime.start(alias, 'default')).rejects.toThrow(/alias/)
  await expect(kit.runtime.stop(alias)).rejects.toThrow(/alias/)
  await expect(kit.runtime.startFresh(alias)).rejects.toThrow(/alias/)
  expect(() => kit.layout.sessionsDir(alias)).toThrow(/alias/)
  expect(() => kit.runtime.status(alias)).toThrow(/alias/)
  expect(kit.runtime.status('fake:unknown')).toEqual({ state: 'stopped', busy: false })
  expect(existsSync(kit.layout.workspaceOf('fake:unknown'))).toBe(false)
  expect(kit.driver.guests).toHaveLength(1)
})

test('PD-06 PR-06 PR-07 starts for one profile share a worker; another profile replaces it', async () => {
  await using kit = piKit()
  await Promise.all([1, 2, 3].map(() => kit.runtime.start('fake:1', 'default')))
  expect(kit.driver.guests).toHaveLength(1)
  expect(kit.runtime.status('fake:1')).toMatchObject({ state: 'ready', profile: 'default', busy: false })
  await kit.runtime.start('fake:1', 'other')
  expect(kit.driver.alive().map((guest) => guest.spec.workerId)).toEqual([
    kit.driver.guests[1]?.spec.workerId,
  ])
  expect(kit.runtime.status('fake:1')).toMatchObject({ state: 'ready', profile: 'other' })
  await expect(kit.runtime.start('fake:1', 'constructor')).rejects.toMatchObject({ code: 'profile_unknown' })
  expect(kit.driver.breaches).toEqual([])
})

test('W-70 starts for two profiles at once run one after the other, and a failed one fails no other', async () => {
  await using kit = piKit()
  let starts = 0
  kit.driver.onStart = () => {
    starts += 1
    if (starts === 1) throw new TypeError('no room')
  }
  const wanted = ['default', 'other', 'default', 'other'].map((name) => kit.runtime.start('fake:1', name))
  const ended = await Promise.allSettled(wanted)
  expect(ended.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected', 'fulfilled'])
  expect(kit.driver.alive()).toHaveLength(1)
  expect(kit.driver.breaches).toEqual([])
})

test('PR-06 W-63 a worker of an old image is replaced before its next turn', async () => {
  await using kit = piKit()
  await kit.say('one')
  kit.driver.image = 'image-2'
  await kit.say('two')
  expect(kit.driver.guests).toHaveLength(1)
  kit.clock.advance(10_000)
  expect(await kit.say('three')).toMatchObject({ ok: true, text: 'u-ann: three' })
  expect(kit.driver.guests).toHaveLength(2)
  expect(kit.driver.alive()).toHaveLength(1)
  expect(texts(kit.lines)).toContain('the image changed: the worker is replaced')
  kit.driver.image = 'image-3'
  await kit.runtime.start('fake:1', 'default')
  expect(kit.driver.guests).toHaveLength(3)
})

test('W-63 an engine that does not say which image is current costs no turn, and no worker', async () => {
  await using kit = piKit()
  await kit.say('one')
  let asked = 0
  kit.driver.identity = () => {
    asked += 1
    return new Promise(() => {})
  }
  kit.clock.advance(10_000)
  const turn = kit.say('two')
  await until(() => asked === 1)
  kit.clock.advance(2_000)
  expect(await turn).toMatchObject({ ok: true, text: 'u-ann: two' })
  expect(kit.driver.guests).toHaveLength(1)
})

test('PR-11 W-52 the effort is judged beside the start, remembered, and checked', async () => {
  const asked: unknown[] = []
  const answers: unknown[] = ['high', 'extreme', 'xhigh', new TypeError('broken')]
  await using kit = piKit({
    ports: {
      judge: ({ text, previous }) => {
        asked.push({ text, previous })
        const answer = answers.shift()
        if (answer instanceof Error) throw answer
        return answer as 'high'
      },
    },
  })
  for (const text of ['one', 'two', 'three', 'four']) await kit.say(text)
  expect(kit.driver.guests[0]?.turns.map(({ thinking }) => thinking)).toEqual([
    'high',
    'high',
    'xhigh',
    'xhigh',
  ])
  expect(asked).toEqual([
    { text: 'one', previous: undefined },
    { text: 'two', previous: 'high' },
    { text: 'three', previous: 'high' },
    { text: 'four', previous: 'xhigh' },
  ])
  expect(texts(kit.lines).filter((line) => /judged/.test(line))).toHaveLength(2)
  await kit.runtime.stop('fake:1')
  expect(kit.runtime.status('fake:1')).toEqual({ state: 'stopped', busy: false })
})

test('PR-11 a judge that never answers costs no turn, and hears that nobody waits for it', async () => {
  let signal: AbortSignal | undefined
  await using kit = piKit({
    ports: {
      judge: (question) => {
        signal = question.signal
        return new Promise(() => {})
      },
    },
  })
  const turn = kit.say('hi')
  await until(() => kit.driver.guests[0]?.welcome !== undefined && signal !== undefined)
  kit.clock.advance(10_000)
  expect(await turn).toMatchObject({ ok: true })
  expect(signal?.aborted).toBe(true)
  expect(kit.driver.guests[0]?.turns[0]?.thinking).toBe('low')
  expect(texts(kit.lines)).toContain('the effort could not be judged; it stays as it was')
})

test('CS-12 what becomes of a call of an earlier turn says nothing about this one', async () => {
  let tell: Parameters<PiRuntimePorts['openBroker']>[1] = () => {}
  await using kit = piKit({
    script: (turn) => {
      tell({ turnId: 'earlier', route: 'model', reason: 'credential_missing' } as CallEvent)
      return said(turn)
    },
    ports: {
      openBroker: (_, onCall) => {
        tell = onCall
        return new PiSandboxBroker({ model: 'm', oauthToken: () => undefined })
      },
    },
  })
  expect(await kit.say('hi')).toMatchObject({ ok: true })
})

test.each(['plain', 'fail', 'hang'])(
  'PR-13 judge and start, memory, bind with identity, level and deadline, then release after the signal: %s',
  async (what) => {
    const order: string[] = []
    const noted = (name: string) => order.push(name)
    await using kit = piKit({
      script: async (turn) => (turn.text === 'hang' ? never() : turn.text === 'fail' ? FAILED : said(turn)),
      ports: {
        judge: () => {
          noted('judge')
          return 'medium'
        },
        memory: async () => {
          noted('memory')
          return 'about'
        },
        openBroker: () => {
          noted('open')
          const broker = new PiSandboxBroker({ model: 'm', oauthToken: () => undefined })
          const bind = broker.bind.bind(broker)
          broker.bind = (context, options) => {
            const { channel, speaker, profile, thinking, deadline, signal } = context
            noted(
              `bind ${channel} ${speaker.id} ${profile} ${thinking} ${deadline === kit.clock.now() + 600_000}`,
            )
            signal.addEventListener('abort', () => noted('abort'))
            const bound = bind(context, options)
            return {
              ...bound,
              release(how) {
                noted(`release ${how?.abort}`)
                bound.release(how)
              },
            }
          }
          return broker
        },
      },
    })
    const turn = kit.say(what)
    if (what === 'hang') {
      await until(() => kit.driver.guests[0]?.turns.length === 1)
      await kit.runtime.stop('fake:1')
    }
    await turn
    const bind = 'bind fake:1 u-ann default medium true'
    expect(order).toEqual(['judge', 'open', 'memory', bind, 'abort', 'release true'])
  },
)

test('PR-12 W-04 memory is asked for the speaker who was admitted, and travels in this turn alone', async () => {
  const asked: unknown[] = []
  let more = {}
  const speaker = { id: 'u-ann', name: 'Ann' }
  await using kit = piKit({
    ports: {
      memory: async ({ channel, speaker: whose }) => {
        asked.push({ channel, whose })
        speaker.id = 'u-bob'
        return `about ${whose.id}`
      },
    },
    script: (turn) => {
      more = turn
      return { ok: true, text: turn.speaker.id, files: [] }
    },
  })
  const turn = kit.say('hi', { speaker })
  speaker.name = 'Mallory'
  expect(await turn).toMatchObject({ text: 'u-ann' })
  expect(asked).toEqual([{ channel: 'fake:1', whose: { id: 'u-ann', name: 'Ann' } }])
  expect(more).toMatchObject({ memory: 'about u-ann', speaker: { id: 'u-ann', name: 'Ann' } })
})

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new TypeError('database at db.internal is down')
    },
  ],
  ['is too long', () => 'x'.repeat(100_001)],
  ['gives no text', () => ({ text: 'x' })],
])(
  'PR-10 memory that %s ends the turn before it is bound, in words that say nothing of it',
  async (_, memory) => {
    await using kit = piKit({ ports: { memory: memory as () => string } })
    const reply = await kit.say('hi')
    expect(reply).toMatchObject({ ok: false, category: 'host' })
    expect(!reply.ok && reply.text).not.toMatch(/database|internal|characters/)
    expect(kit.driver.alive()).toHaveLength(1)
    expect(kit.turns.map(({ state }) => state)).not.toContain('bound')
  },
)

test('MD-02 AT-05 images travel in the turn, attachments lie in the workspace before it', async () => {
  let seen = ''
  let turn: PiTurn | undefined
  await using kit = piKit({
    script: (given, { spec }) => {
      turn = given
      seen = readFileSync(join(spec.workspaceDir, 'attachments', 'm1-0-a.txt'), 'utf8')
      return { ok: true, text: 'ok', files: [] }
    },
  })
  const attachments = [{ name: 'm1-0-a.txt', mimeType: 'text/plain', data: Buffer.from('hello') }]
  const images = [{ mimeType: 'image/png', data: 'AAAA' }]
  expect(await kit.say('look', { attachments, images })).toMatchObject({ ok: true })
  expect(seen).toBe('hello')
  expect(turn).toMatchObject({
    images,
    attachments: [{ name: 'm1-0-a.txt', mimeType: 'text/plain', bytes: 5 }],
  })
})

test('PR-14 MD-03 W-54 files come out decoded, and how many were left out is said', async () => {
  await using kit = piKit({
    script: () => ({ ok: true, text: 'here', files: [{ name: 'a.bin', data: 'AQID' }], leftOut: 2 }),
  })
  expect(await kit.say('file?')).toEqual({
    ok: true,
    text: 'here',
    files: [{ name: 'a.bin', data: Uint8Array.from([1, 2, 3]) }],
    leftOut: 2,
  })
})

test('MD-04 the host checks files again, though the desk did', async () => {
  await using kit = piKit()
  await kit.runtime.start('fake:1', 'default')
  const broker = kit.brokers[0] as { desk: { deliver: unknown } }
  broker.desk.deliver = async () => ({ ok: true, text: 'x', files: [{ name: '../up', data: 'AAAA' }] })
  expect(await kit.say('file?')).toMatchObject({ ok: false, category: 'worker' })
  expect(kit.lines.at(-1)).toMatchObject({ fields: { cause: /its name is not safe/ } })
})

test('progress shows the answer as it grows, never after the turn, and its listener may fail', async () => {
  const seen: string[] = []
  let late: (() => Promise<unknown>) | undefined
  await using kit = piKit({
    script: async ({ turnId }, guest) => {
      const piece = (seq: number, at: number, text: string) =>
        guest.message('/worker/progress', { turnId, seq, at, text })
      await piece(0, 0, 'Hel')
      await piece(1, 3, 'lo')
      await piece(2, 0, 'New')
      late = () => piece(3, 3, '!')
      return { ok: true, text: 'Newest', files: [] }
    },
  })
  const onProgress = ({ text }: { text: string }) => {
    seen.push(text)
    throw new TypeError('a listener')
  }
  expect(await kit.say('hi', { onProgress })).toMatchObject({ text: 'Newest' })
  await late?.()
  expect(seen).toEqual(['Hel', 'Hello', 'New'])
})

test('PR-16 [worker:pi-gone-when-cut] at the deadline the last 200 lines are logged, scrubbed, and then this very worker is removed', async () => {
  const order: string[] = []
  await using kit = piKit({ script: never })
  kit.driver.onRemove = (guest) => {
    order.push(`remove ${guest.spec.workerId}`)
  }
  const turn = kit.say('hi')
  await until(() => kit.driver.guests[0]?.turns.length === 1)
  const guest = kit.driver.guests[0] as WireGuest
  guest.output = `${Array.from({ length: 300 }, (_, line) => `line ${line}`).join('\n')}\nkey sk-ant-oat01-${'a1B2'.repeat(12)}`
  kit.clock.advance(600_000)
  const reply = await turn
  expect(reply).toMatchObject({ ok: false, category: 'timeout', text: /took too long/ })
  const line = kit.lines.find(({ message }) => message === 'what the worker said')?.fields as {
    output: string
  }
  expect(line.output.split('\n')).toHaveLength(200)
  expect(line.output).not.toContain('a1B2a1B2')
  expect(kit.lines.find(({ message }) => message === 'sandbox turn failed')?.fields).toMatchObject({
    timedOut: true,
    cancelled: false,
  })
  expect(order).toEqual([`remove ${guest.spec.workerId}`])
  expect(guest.alive).toBe(false)
  kit.driver.script = said
  expect(await kit.say('again')).toMatchObject({ ok: true, text: 'again' })
})

test('PR-16 a worker that answers with a failure stays, and its log is not read', async () => {
  await using kit = piKit({
    script: () => ({
      ok: false,
      code: 'model_failed',
      error: 'said by the guest sk-ant-oat01-abcdefghijklmnop',
    }),
  })
  kit.driver.onStart = () => {}
  expect(await kit.say('hi')).toMatchObject({ ok: false, category: 'worker', text: /could not finish/ })
  expect(kit.driver.alive()).toHaveLength(1)
  expect(texts(kit.lines)).not.toContain('what the worker said')
  const errors = kit.lines.filter(({ level }) => level === 'error')
  expect(errors).toEqual([])
})

test('PR-15 a worker that says that its time is over, when it is not, is believed by nobody', async () => {
  await using kit = piKit({ script: () => ({ ok: false, code: 'deadline', error: 'so it says' }) })
  expect(await kit.say('hi')).toMatchObject({ ok: false, category: 'worker' })
})

test('T51 a sweep spares the workers that are in use, and none that is not', async () => {
  await using kit = piKit()
  await kit.say('hi')
  const spared: string[][] = []
  kit.driver.sweep = async (live) => {
    spared.push([...live])
    return []
  }
  kit.clock.advance(30_000)
  await until(() => spared.length === 1)
  await kit.runtime.stop('fake:1')
  kit.clock.advance(30_000)
  await until(() => spared.length === 2)
  expect(spared).toEqual([[kit.driver.guests[0]?.spec.workerId], []])
})

test('W-71 a removal that fails turns no result into a rejection, and stop does everything else', async () => {
  await using kit = piKit({ script: never })
  kit.driver.onRemove = () => {
    throw new TypeError('the engine says no')
  }
  const turn = kit.say('hi')
  await until(() => kit.driver.guests[0]?.turns.length === 1)
  const socket = join(kit.driver.guests[0]?.spec.runDir as string, 'worker.sock')
  await expect(kit.runtime.stop('fake:1')).rejects.toMatchObject({ code: 'cleanup_failed' })
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  expect(existsSync(socket)).toBe(false)
  expect(await kit.say('next')).toMatchObject({ ok: false, category: 'container' })
  expect(kit.driver.guests).toHaveLength(1)
  kit.driver.onRemove = () => {}
  kit.driver.script = said
  expect(await kit.say('next')).toMatchObject({ ok: true })
  expect(kit.driver.breaches).toEqual([])
})

test('W-72 stop resolves when the turn that it ended has cleaned up', async () => {
  await using kit = piKit({ script: never })
  let removed = false
  kit.driver.onRemove = async () => {
    await new Promise((done) => setTimeout(done, 20))
    removed = true
  }
  const turn = kit.say('hi')
  await until(() => kit.driver.guests[0]?.turns.length === 1)
  await kit.runtime.stop('fake:1')
  expect(removed).toBe(true)
  expect(kit.runtime.status('fake:1')).toEqual({ state: 'stopped', busy: false })
  await turn
})

test('PR-17 stop calls off a start under way, and whoever waits for it hears so', async () => {
  await using kit = piKit()
  let begin = () => {}
  const gate = new Promise<void>((done) => (begin = done))
  kit.driver.onStart = () => gate
  const start = kit.runtime.start('fake:1', 'default')
  const turn = kit.say('hi')
  const stop = kit.runtime.stop('fake:1')
  begin()
  await expect(start).rejects.toMatchObject({ code: 'stopped' })
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  expect(await stop).toBe(true)
  expect(kit.driver.alive()).toEqual([])
})

test('PR-07 PR-17 a start that is asked for after a stop is not the one that was called off', async () => {
  await using kit = piKit()
  const first = kit.runtime.start('fake:1', 'default')
  const stop = kit.runtime.stop('fake:1')
  const second = kit.runtime.start('fake:1', 'default')
  await expect(first).rejects.toMatchObject({ code: 'stopped' })
  expect(await stop).toBe(false)
  await second
  expect(kit.driver.alive()).toHaveLength(1)
})

test('a start that joined the start of a stopped turn begins its own', async () => {
  await using kit = piKit()
  let begin = () => {}
  const gate = new Promise<void>((done) => (begin = done))
  kit.driver.onStart = () => gate
  const gone = new AbortController()
  const turn = kit.say('hi', { signal: gone.signal })
  await until(() => kit.runtime.status('fake:1').state === 'starting')
  const start = kit.runtime.start('fake:1', 'default')
  gone.abort()
  begin()
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  await start
  expect(kit.runtime.status('fake:1')).toMatchObject({ state: 'ready' })
})

test.each([
  ['listen', 'broker', 'broker: no socket here', /model service/],
  ['start', 'container', 'start: no room', /safe place/],
])('a %s that fails is told as what it is', async (what, category, cause, words) => {
  await using kit = piKit({
    ports: {
      openBroker: () => {
        const broker = new PiSandboxBroker({ model: 'm', oauthToken: () => undefined })
        if (what === 'listen') broker.listen = () => Promise.reject(new TypeError('no socket here'))
        return broker
      },
    },
  })
  kit.driver.onStart = () => {
    if (what === 'start') throw new TypeError('no room')
  }
  expect(await kit.say('hi')).toMatchObject({ ok: false, category, text: words })
  expect(kit.turns.at(-1)).toMatchObject({ state: 'settled', category, cause })
  expect(kit.lines.at(-1)).toMatchObject({
    level: 'error',
    message: 'sandbox turn failed',
    fields: { cause },
  })
})

test('PR-18 startFresh stops the worker and moves the conversation aside', async () => {
  await using kit = piKit()
  await kit.say('hi')
  const sessions = kit.layout.sessionsDir('fake:1')
  writeFileSync(join(sessions, 's.jsonl'), 'old')
  await kit.runtime.startFresh('fake:1')
  expect(kit.driver.alive()).toEqual([])
  expect(readdirSync(sessions)).toEqual(['archive'])
  expect(await kit.say('anew')).toMatchObject({ ok: true })
})

test('W-51 W-57 a worker that keeps ending is reported and left alone, until the pause is over or somebody starts it', async () => {
  await using kit = piKit()
  kit.driver.onGuest = (guest) => guest.end({ reason: 'exited', code: 1 })
  const turn = kit.say('hi')
  const pump = setInterval(() => kit.clock.advance(1_000), 5)
  const reply = await turn
  clearInterval(pump)
  expect(reply).toMatchObject({ ok: false, category: 'container' })
  expect(kit.driver.guests).toHaveLength(3)
  expect(kit.runtime.status('fake:1')).toMatchObject({ state: 'paused' })
  expect(texts(kit.lines)).toContain('the workers of a channel keep ending; none is started for a while')
  expect(await kit.say('again')).toMatchObject({ ok: false, category: 'container' })
  expect(kit.driver.guests).toHaveLength(3)
  kit.clock.advance(60_000)
  expect(await kit.say('once more')).toMatchObject({ ok: false })
  expect(kit.driver.guests).toHaveLength(4)
  kit.driver.onGuest = () => {}
  await kit.runtime.start('fake:1', 'default')
  expect(await kit.say('well')).toMatchObject({ ok: true })
})

test('PR-02 a worker that is never ready is given up after startTimeoutMs', async () => {
  await using kit = piKit({ policy: { startTimeoutMs: 5_000 } })
  kit.driver.onGuest = (guest) => {
    guest.hello = () => new Promise(() => {})
  }
  const start = kit.runtime.start('fake:1', 'default')
  const pump = setInterval(() => kit.clock.advance(1_000), 5)
  await expect(start).rejects.toMatchObject({ code: 'worker_looping' })
  clearInterval(pump)
  expect(kit.driver.alive()).toEqual([])
  expect(texts(kit.lines)).toContain('a worker ended before it was ready')
})

test('W-51 a worker that ends between turns is replaced in the background', async () => {
  await using kit = piKit()
  await kit.say('hi')
  kit.driver.guests[0]?.end({ reason: 'killed', signal: 'SIGKILL' })
  await until(() => kit.driver.guests.length === 2 && kit.runtime.status('fake:1').state === 'ready')
  expect(await kit.say('there?')).toMatchObject({ ok: true })
  expect(kit.driver.guests).toHaveLength(2)
  expect(kit.driver.breaches).toEqual([])
})

test('W-51 a worker that ends in its turn fails it at once, and the next turn has a new one', async () => {
  await using kit = piKit({ script: never })
  const turn = kit.say('hi')
  await until(() => kit.driver.guests[0]?.turns.length === 1)
  kit.driver.guests[0]?.end({ reason: 'oom', code: 137 })
  expect(await turn).toMatchObject({ ok: false, category: 'container' })
  kit.driver.script = said
  expect(await kit.say('next')).toMatchObject({ ok: true })
  expect(kit.driver.breaches).toEqual([])
})

test('W-51 a silent worker is seen and replaced, without a turn', async () => {
  await using kit = piKit()
  await kit.runtime.start('fake:1', 'default')
  const [first] = kit.driver.guests
  expect(kit.runtime.status('fake:1').state).toBe('ready')
  const broker = kit.brokers[0] as unknown as { desk: { state: string } }
  Object.defineProperty(broker.desk, 'state', { get: () => 'silent' })
  expect(kit.runtime.status('fake:1').state).toBe('silent')
  kit.clock.advance(30_000)
  await until(() => kit.driver.guests.length === 2 && kit.runtime.status('fake:1').state === 'ready')
  expect(first?.alive).toBe(false)
  expect(texts(kit.lines)).toContain('a worker gave no sign of life')
})

test('PR-19 stopBrokers ends turns and starts and closes every listener; the runtime stays usable', async () => {
  await using kit = piKit({ script: never })
  const turn = kit.say('hi')
  await kit.runtime.start('fake:2', 'default')
  await until(
    () => (kit.driver.guests.at(0)?.turns.length ?? 0) + (kit.driver.guests.at(1)?.turns.length ?? 0) === 1,
  )
  await kit.runtime.stopBrokers()
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  expect(kit.driver.alive()).toEqual([])
  for (const guest of kit.driver.guests) expect(existsSync(guest.spec.runDir)).toBe(false)
  kit.driver.script = said
  expect(await kit.say('again')).toMatchObject({ ok: true })
})

test('after dispose nothing runs, nothing is listened for, and a turn is refused in words', async () => {
  const kit = piKit({ script: never })
  const turn = kit.say('hi')
  await until(() => kit.driver.guests[0]?.turns.length === 1)
  await Promise.all([kit.runtime.dispose(), kit.runtime.dispose()])
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  expect(await kit.say('hi')).toMatchObject({ ok: false, category: 'stopped' })
  await expect(kit.runtime.start('fake:1', 'default')).rejects.toMatchObject({ code: 'closed' })
  expect(kit.clock.waiting).toBe(0)
  await kit[Symbol.asyncDispose]()
})

test('PR-18 after dispose nothing is moved or made: the party directory may be another host’s', async () => {
  const kit = piKit()
  await kit.say('hi')
  const sessions = kit.layout.sessionsDir('fake:1')
  writeFileSync(join(sessions, 's.jsonl'), 'of the next host')
  await kit.runtime.dispose()
  await expect(kit.runtime.startFresh('fake:1')).rejects.toMatchObject({ code: 'closed' })
  expect(await kit.runtime.stop('fake:2')).toBe(false)
  expect(readdirSync(sessions)).toEqual(['s.jsonl'])
  expect(readdirSync(kit.layout.partyDir).sort()).toEqual(['fake_1', 'install-id'])
  await kit[Symbol.asyncDispose]()
})
