import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { SandboxPluginError } from '../src/errors.ts'
import type { GuestScript } from './pi-guest.ts'
import { type PiKit, piKit } from './pi-kit.ts'

/** `PI_SEED=123` plays one sequence again; `PI_SEEDS=500` plays so many. */
const ONE = process.env.PI_SEED
const SEEDS =
  ONE === undefined
    ? Array.from({ length: Number(process.env.PI_SEEDS ?? 12) }, () => Math.floor(Math.random() * 2 ** 31))
    : [Number(ONE)]
const STEPS = 60
const ACTS = ['turn', 'turn', 'turn', 'turn', 'start', 'start', 'stop', 'fresh', 'kill', 'clock'] as const

/** What a start, a stop or a reset may reject with. */
const KNOWN = ['stopped', 'worker_looping', 'worker_ended', 'worker_late', 'cleanup_failed', 'no_room']

class Refused extends SandboxPluginError {
  constructor() {
    super('worker_late', 'no room on this engine')
  }
}

test.each(SEEDS)(
  'W-70 W-71 W-72 PR-07 starts, stops, resets and turns of one channel at once, seed %i',
  async (seed) => {
    const kit = piKit()
    const world = new World(kit)
    kit.driver.script = world.script
    // Each part has dice of its own, so that the plan is the same however fast the machine is.
    const [plan, starts, guests, removals] = [0, 1, 2, 3].map((part) => new Dice(seed + part)) as Dice4
    kit.driver.onStart = async () => {
      for (let ticks = starts.below(4); ticks > 0; ticks -= 1) await pause(0)
      if (starts.chance(0.08)) throw new Refused()
    }
    kit.driver.onGuest = (guest) => {
      if (guests.chance(0.1)) guest.end({ reason: 'exited', code: 1 })
      if (guests.chance(0.04)) guest.hello = () => new Promise(() => {})
    }
    let stubborn = true
    const refusals = new Map<unknown, number>()
    kit.driver.onRemove = async (guest) => {
      if (removals.chance(0.3)) await pause(1)
      const left = refusals.get(guest) ?? (removals.chance(0.25) ? removals.below(5) : 0)
      refusals.set(guest, left - 1)
      guest.lingers = stubborn && left > 0
      if (guest.lingers) throw new TypeError('the engine says no')
    }
    const running: Promise<unknown>[] = []
    for (let step = 0; step < STEPS; step += 1) {
      running.push(world.act(step, plan))
      if (plan.chance(0.7)) await pause(plan.below(14))
    }
    stubborn = false
    const ticking = setInterval(() => kit.clock.advance(20_000), 5)
    await Promise.all(running)
    await kit.runtime.stop('fake:1')
    clearInterval(ticking)

    expect(kit.driver.breaches).toEqual([])
    expect(world.wrong).toEqual([])
    expect(kit.driver.alive()).toEqual([])
    expect(kit.runtime.status('fake:1')).toEqual({ state: 'stopped', busy: false })
    for (const { spec } of kit.driver.guests) expect(existsSync(spec.runDir)).toBe(false)
    expect(world.linesKept()).toBe(world.linesWritten)
    // And it still works.
    kit.driver.onStart = () => {}
    kit.driver.onGuest = () => {}
    expect(await kit.say('plain at the end')).toMatchObject({ ok: true, text: 'u-ann: plain at the end' })
    await kit[Symbol.asyncDispose]()
  },
  60_000,
)

/** What happens in a channel, and what must hold whatever does. */
class World {
  readonly #kit: PiKit
  /** What must never be seen. */
  readonly wrong: string[] = []
  readonly #nonces = new Set<string>()
  readonly #active = new Map<string, number>()
  linesWritten = 0

  constructor(kit: PiKit) {
    this.#kit = kit
  }

  /** The guest does what the text of its turn says. */
  readonly script: GuestScript = async (turn, guest) => {
    const { channelHash, workspaceDir } = guest.spec
    if (this.#nonces.has(turn.nonce)) this.wrong.push('a nonce twice')
    this.#nonces.add(turn.nonce)
    const active = (this.#active.get(channelHash) ?? 0) + 1
    this.#active.set(channelHash, active)
    if (active > 1) this.wrong.push('two turns at once in a channel')
    const leave = () => this.#active.set(channelHash, (this.#active.get(channelHash) ?? 1) - 1)
    guest.gone.addEventListener('abort', leave, { once: true })
    if (turn.text.startsWith('crash')) guest.end({ reason: 'exited', code: 1 })
    if (turn.text.startsWith('hang')) await new Promise(() => {})
    if (turn.text.startsWith('slow')) await pause(3)
    if (!guest.alive) return { ok: false, code: 'internal', error: 'killed' }
    appendFileSync(join(workspaceDir, 'sessions', 's.jsonl'), '{}\n')
    this.linesWritten += 1
    guest.gone.removeEventListener('abort', leave)
    leave()
    if (turn.text.startsWith('fail')) return { ok: false, code: 'model_failed', error: 'as asked' }
    return { ok: true, text: `${turn.speaker.id}: ${turn.text}`, files: [] }
  }

  async act(step: number, plan: Dice): Promise<void> {
    const { runtime, driver, clock } = this.#kit
    switch (plan.pick(ACTS)) {
      case 'turn':
        return await this.#turn(
          `${plan.pick(['plain', 'plain', 'slow', 'fail', 'hang', 'crash'])} ${step}`,
          plan,
        )
      case 'start':
        return await this.#allowed(runtime.start('fake:1', plan.pick(['default', 'other'])))
      case 'stop':
        return await this.#allowed(runtime.stop('fake:1'))
      case 'fresh':
        return await this.#allowed(runtime.startFresh('fake:1'))
      case 'kill':
        return driver.alive()[0]?.end({ reason: 'killed', signal: 'SIGKILL' })
      case 'clock':
        return clock.advance(plan.pick([100, 1_000, 30_000, 100_000]))
    }
  }

  async #turn(text: string, plan: Dice): Promise<void> {
    const speaker = plan.pick([
      { id: 'u-ann', name: 'Ann' },
      { id: 'u-bob', name: 'Bob' },
    ])
    const gone = new AbortController()
    if (plan.chance(0.15)) setTimeout(() => gone.abort(), 3)
    const profile = plan.pick(['default', 'default', 'other'])
    try {
      const reply = await this.#kit.say(text, { speaker: { ...speaker }, profile, signal: gone.signal })
      if (reply.ok && reply.text !== `${speaker.id}: ${text}`) this.wrong.push(`${text} got ${reply.text}`)
      if (!reply.ok && reply.category === 'input') this.wrong.push(reply.text)
    } catch (error) {
      this.wrong.push(`a turn rejected: ${error}`)
    }
  }

  async #allowed(work: Promise<unknown>): Promise<void> {
    await work.catch((error) => {
      const code = SandboxPluginError.isInstance(error) ? error.code : String(error)
      if (!KNOWN.includes(code)) this.wrong.push(`rejected with ${code}`)
    })
  }

  /** Lines of all conversations, archived or not. */
  linesKept(): number {
    const sessions = this.#kit.layout.sessionsDir('fake:1')
    const names = readdirSync(sessions, { recursive: true, encoding: 'utf8' })
    return names
      .filter((name) => name.endsWith('.jsonl'))
      .reduce((sum, name) => sum + readFileSync(join(sessions, name), 'utf8').split('\n').length - 1, 0)
  }
}

type Dice4 = [Dice, Dice, Dice, Dice]

/** Chance that a seed decides. */
class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  chance(share: number): boolean {
    return this.#next() < share
  }

  /** A whole number from 0 on. */
  below(end: number): number {
    return Math.floor(this.#next() * end)
  }

  pick<T>(from: readonly T[]): T {
    return from[this.below(from.length)] as T
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
