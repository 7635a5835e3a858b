import type { ChannelKey } from '../../src/host-contract.ts'
import { message } from '../messages.ts'
import { type ChatDrivers, type ChatHost, type ChatPlace, chatPlace, holdings } from './chat-host.ts'
import { answerOf, problemOf, type Said, textOf } from './ledger.ts'
import { type ChatModels, chatModels } from './model-service.ts'
import { type ChatSize, channelsOf, diceOf, type Mode, type Step, scriptOf } from './script.ts'

/** What a chat came to. */
export interface ChatReport {
  readonly seed: number
  readonly messages: number
  readonly answered: number
  /** Told in words why there is no answer. */
  readonly refused: number
  /** Not taken: not on, or turned off, or dropped by a restart, while it waited. */
  readonly silent: number
  readonly calls: number
  readonly restarts: number
  readonly ms: number
  /** Everything that must not be; empty when all is well. */
  readonly problems: readonly string[]
}

/** Errors that belong to a model service out of order. */
const EXPECTED = new Set(['turn failed', 'sandbox turn failed'])

/** Plays a chat: every message is checked when it is over, and what is left when its host is gone. */
export async function runChat(seed: number, size: ChatSize, drivers: ChatDrivers = {}): Promise<ChatReport> {
  const before = holdings()
  const began = performance.now()
  const dice = diceOf(seed)
  const chat = new Chat(size)
  const models = await chatModels(chat.said, (one) => chat.hangs(one))
  const place = chatPlace(models.url, chat.channels, {
    posts: (channel, text) => chat.posts(channel, text),
    drivers,
  })
  try {
    await chat.play(place, scriptOf(size, dice))
    chat.problems.push(...place.left())
  } finally {
    place[Symbol.dispose]()
    await models[Symbol.asyncDispose]()
  }
  await gone(before, chat.problems)
  return chat.report(seed, models, Math.round(performance.now() - began))
}

class Chat {
  readonly said: Said[] = []
  readonly problems: string[] = []
  readonly channels: readonly ChannelKey[]
  readonly #size: ChatSize
  /** Replies that no message has claimed yet. */
  readonly #posted = new Map<ChannelKey, string[]>()
  /** Who owns a channel once everything that waits in it is done. */
  readonly #planned = new Map<ChannelKey, Mode>()
  /** Ids below are forgotten once what waits is done, and for good. */
  readonly #floors = new Map<ChannelKey, { planned: number; kept: number }>()
  readonly #revoked = new Set<string>()
  readonly #pending = new Set<Promise<void>>()
  #now: ChatHost | undefined
  #restarts = 0

  constructor(size: ChatSize) {
    this.#size = size
    this.channels = channelsOf(size)
  }

  async play(place: ChatPlace, steps: readonly Step[]): Promise<void> {
    await this.#start(place)
    for (const step of steps) await this.#step(step, place)
    await this.#stop(60_000)
  }

  posts(channel: ChannelKey, text: string): void {
    const waiting = this.#posted.get(channel) ?? []
    this.#posted.set(channel, [...waiting, text])
  }

  /** Somebody waits for a model that never answers: the channel is stopped a little later. */
  hangs({ channel }: Said): void {
    setTimeout(() => this.#stopTurn(channel), 20)
  }

  report(seed: number, { breaches, seen }: ChatModels, ms: number): ChatReport {
    for (const [channel, texts] of this.#posted) {
      for (const text of texts) this.problems.push(`a reply in ${channel} belongs to no message: ${text}`)
    }
    const answered = this.said.filter((one) => one.replies[0] === answerOf(one)).length
    const silent = this.said.filter(({ replies }) => replies.length === 0).length
    return {
      seed,
      messages: this.said.length,
      answered,
      refused: this.said.length - answered - silent,
      silent,
      calls: seen.length,
      restarts: this.#restarts,
      ms,
      problems: [...this.problems, ...breaches],
    }
  }

  get #host(): ChatHost {
    return this.#now as ChatHost
  }

  async #step(step: Step, place: ChatPlace): Promise<void> {
    switch (step.do) {
      case 'say':
        while (this.#pending.size >= this.#size.atOnce) await Promise.race(this.#pending)
        return this.#say(step)
      case 'switch':
        return await this.#switch(step.channel, step.mode)
      case 'stop':
        return this.#stopTurn(step.channel)
      case 'reset':
        return this.#reset(step.channel)
      case 'erase':
        return await this.#erase(step.channel)
      case 'revoke':
      case 'restore':
        return this.#spending(step)
      case 'restart':
        await this.#stop(step.drainMs)
        this.problems.push(...place.left())
        this.#restarts += 1
        return await this.#start(place)
      case 'pause': {
        const enough = Math.floor(this.#pending.size * (1 - step.share))
        while (this.#pending.size > enough) await Promise.race(this.#pending)
      }
    }
  }

  #say({ channel, speaker, behaviour }: Extract<Step, { do: 'say' }>): void {
    const id = this.said.length
    const barred = this.#revoked.has(`${channel} ${speaker}`)
    const said: Said = {
      id,
      channel,
      speaker,
      behaviour,
      admittedBy: this.#host.modeOf(channel),
      ownedBy: this.#planned.get(channel) ?? 'off',
      floor: this.#floor(channel).planned,
      stopped: false,
      revoked: barred,
      barred,
      restarted: false,
      calls: 0,
      replies: [],
      over: false,
    }
    this.said.push(said)
    const text = textOf(id, behaviour)
    const inbound = message({
      channel,
      text,
      messageId: `m-${id}`,
      authorId: speaker,
      authorName: `Name of ${speaker}`,
    })
    this.#track(this.#host.host.conversations.handle(inbound).then(() => this.#over(said)))
  }

  /** Turns of a channel end in their order, so what was posted since the last one is this one's. */
  #over(said: Said): void {
    said.over = true
    if (said.admittedBy !== 'off') {
      said.replies = this.#posted.get(said.channel) ?? []
      this.#posted.delete(said.channel)
    }
    const problem = problemOf(said)
    if (problem !== undefined) this.problems.push(problem)
    const floor = this.#floor(said.channel)
    const remembered = said.ownedBy === 'sealed' && said.replies[0] === answerOf(said)
    if (remembered) floor.kept = Math.max(floor.kept, said.floor)
  }

  /** Off in one mode, then on in the other: two commands, each behind the turns that wait. */
  async #switch(channel: ChannelKey, mode: Mode): Promise<void> {
    const from = this.#planned.get(channel) ?? 'off'
    if (from === mode) return
    this.#planned.set(channel, mode)
    const group = (one: Mode) => (one === 'sealed' ? 'sandbox' : 'pi')
    const { command } = this.#host
    if (from !== 'off') this.#track(command(group(from), 'off', channel).then(() => {}))
    if (mode !== 'off') this.#track(command(group(mode), 'on', channel).then(() => {}))
    // A command is in the queue once its sender was told that it was heard.
    await new Promise((done) => setImmediate(done))
  }

  #stopTurn(channel: ChannelKey): void {
    if (!this.#host.host.conversations.stop(channel)) return
    for (const one of this.#waiting(channel)) one.stopped = true
  }

  #reset(channel: ChannelKey): void {
    if (this.#planned.get(channel) === 'sealed') this.#floor(channel).planned = this.said.length
    // Nobody owns a channel that is off, and a host that stops drops what waits.
    this.#track(
      this.#host.host.conversations.startFresh(channel).then(
        () => {},
        () => {},
      ),
    )
  }

  async #erase(channel: ChannelKey): Promise<void> {
    const mode = this.#planned.get(channel)
    const done = await this.#host.host.conversations.deleteConversation(channel).catch(() => 'unowned')
    if (done !== 'deleted' || mode !== 'sealed') return
    const floor = this.#floor(channel)
    floor.planned = this.said.length
    floor.kept = this.said.length
  }

  #spending({ do: what, channel, speaker }: Extract<Step, { do: 'revoke' | 'restore' }>): void {
    for (const runtime of this.#host.runtimes) runtime[what]({ channel, speaker: { id: speaker } })
    const scope = `${channel} ${speaker}`
    if (what === 'revoke') this.#revoked.add(scope)
    else this.#revoked.delete(scope)
    for (const one of this.#waiting(channel).filter((each) => each.speaker === speaker)) {
      if (what === 'revoke') one.revoked = true
      else one.barred = false
    }
  }

  async #start(place: ChatPlace): Promise<void> {
    this.#now = await place.start()
    for (const channel of this.channels) {
      const mode = this.#host.modeOf(channel)
      const planned = this.#planned.get(channel)
      // What waited when the host stopped was dropped: what is on is what the files say.
      if (planned !== undefined && planned !== mode && !this.#dropped.has(channel)) {
        this.problems.push(`${channel} was ${planned} before the restart, and is ${mode}`)
      }
      this.#planned.set(channel, mode)
      const floor = this.#floor(channel)
      floor.planned = floor.kept
    }
    this.#dropped.clear()
    this.#revoked.clear()
  }

  /** Channels in which something waited when the host was stopped. */
  readonly #dropped = new Set<ChannelKey>()

  async #stop(drainMs: number): Promise<void> {
    const { host, lines } = this.#host
    if (drainMs === 0) {
      for (const one of this.said) if (!one.over) one.restarted = true
      for (const channel of host.queue.busy()) this.#dropped.add(channel)
    }
    await host.stop({ drainMs })
    while (this.#pending.size > 0) await Promise.all(this.#pending)
    for (const { level, fields, message: text } of lines) {
      if (level !== 'error' || (EXPECTED.has(text) && fields.category === 'broker')) continue
      this.problems.push(`an error line: ${text} ${JSON.stringify(fields)}`)
    }
  }

  #waiting(channel: ChannelKey): Said[] {
    return this.said.filter((one) => !one.over && one.channel === channel)
  }

  #floor(channel: ChannelKey): { planned: number; kept: number } {
    const floor = this.#floors.get(channel) ?? { planned: 0, kept: 0 }
    this.#floors.set(channel, floor)
    return floor
  }

  #track(work: Promise<void>): void {
    const tracked = work
      .catch((error: unknown) => void this.problems.push(`something rejected: ${String(error)}`))
      .finally(() => this.#pending.delete(tracked))
    this.#pending.add(tracked)
  }
}

/** Waits until everything that a chat held is given back, and says what is not. */
async function gone(before: ReturnType<typeof holdings>, problems: string[]): Promise<void> {
  for (let left = 10_000; ; left -= 50) {
    const now = holdings()
    const children = now.children.filter((one) => !before.children.includes(one))
    const more = now.descriptors - before.descriptors
    if (children.length === 0 && more <= 0) return
    if (left <= 0) {
      problems.push(...children.map((one) => `${one} still runs`))
      if (more > 0) problems.push(`${more} descriptors are still open`)
      return
    }
    await new Promise((done) => setTimeout(done, 50))
  }
}
