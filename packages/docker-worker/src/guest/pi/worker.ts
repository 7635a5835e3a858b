import { setTimeout as pause } from 'node:timers/promises'
import * as pi from '@earendil-works/pi-coding-agent'
import { limits, type PiOutcome, type PiTurn, type PiWelcome } from '@sandbox/protocol'
import type { ContentKit } from '../../pi-content.ts'
import { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { type LoopbackForwarder, openLoopbackForwarder } from '../shared/loopback-forwarder.ts'
import { readPosture } from '../shared/posture.ts'
import { readTurnId } from '../shared/turn-id.ts'
import { PiAgent, type SessionPlan, type WaitingSession } from './agent.ts'
import { type LoadedContent, loadContent } from './content.ts'
import { type ContributionTurn, contributionExtension } from './contributions.ts'
import { killLeftovers } from './leftovers.ts'
import { logEvent } from './log.ts'
import { Outbox } from './outbox.ts'
import { PiDesk } from './pi-desk.ts'
import { ProgressReporter } from './progress.ts'
import { failed, type PiTurnEnd, runPiTurn } from './run-pi-turn.ts'
import { TurnCalls } from './turn-calls.ts'
import { readPiTurn } from './turn-check.ts'

/** Where a Pi worker finds its host, its files, and what the operator made it of. */
export interface PiWorkerPlaces {
  readonly socket: string
  readonly workspace: string
  readonly content: string
}

/** How long a host that does not answer is asked again: one that restarts brings workers of its own. */
const HOST_GONE_MS = 30_000

/**
 * Takes turn after turn from the socket until the host has no more. Throws a {@link GuestError}: `refused` when the
 * host does not want this worker, `connection_lost` when it is gone, `content_invalid`, `internal` when work of a turn
 * could not be ended: then the process must end with it.
 */
export async function runPiWorker({ socket, workspace, content }: PiWorkerPlaces): Promise<void> {
  const wire = new BrokerWire(socket)
  const desk = new PiDesk(wire)
  const welcome = await desk.hello(readPosture())
  const { compaction } = await desk.config()
  await using forwarder = await openLoopbackForwarder({ socketPath: socket })
  const worker = new PiWorker({
    wire,
    desk,
    forwarder,
    workspace,
    content,
    hostTools: welcome.tools,
    compactor: compaction?.engine,
  })
  await worker.warm()
  logEvent('ready', { tools: welcome.tools.length, mcp: welcome.mcp.length })
  for (;;) {
    const delivered = await nextTurn(desk)
    if (delivered === undefined) break
    await worker.play(delivered)
  }
  wire.close()
}

async function nextTurn(desk: PiDesk): Promise<unknown> {
  let goneSince: number | undefined
  for (;;) {
    try {
      return await desk.next()
    } catch (error) {
      const gone = GuestError.isInstance(error) && ['connection_lost', 'timeout'].includes(error.code)
      goneSince ??= performance.now()
      if (!gone || performance.now() - goneSince > HOST_GONE_MS) throw error
      // Jitter, so that the workers of a host do not come back all at once.
      await pause(limits.PI_POLL_RETRY_MS * (0.2 + 0.8 * Math.random()))
    }
  }
}

interface PiWorkerParts {
  readonly wire: BrokerWire
  readonly desk: PiDesk
  readonly forwarder: LoopbackForwarder
  readonly workspace: string
  readonly content: string
  readonly hostTools: PiWelcome['tools']
  readonly compactor: string | undefined
}

class PiWorker {
  readonly #parts: PiWorkerParts
  readonly #agent: PiAgent
  readonly #contents = new Map<string, Promise<LoadedContent>>()
  /** What the operator's tools work with. */
  #atHand: ContributionTurn | undefined
  /** Nothing of an earlier turn is left. */
  #apart = true
  #waiting: { readonly key: string; readonly session: Promise<WaitingSession> } | undefined

  constructor(parts: PiWorkerParts) {
    this.#parts = parts
    const { workspace, hostTools, compactor } = parts
    this.#agent = new PiAgent({
      workspace,
      hostTools,
      content: (profile) => this.#content(profile),
      ...(compactor === undefined ? {} : { compactor }),
    })
  }

  async warm(): Promise<void> {
    await this.#agent.warm()
  }

  /** Plays one turn from its acknowledgement to its result. */
  async play(delivered: unknown): Promise<void> {
    const { desk } = this.#parts
    const turnId = readTurnId(delivered)
    if (turnId === undefined) throw new GuestError('refused', 'next: the turn has no id')
    if (!(await taken(desk.ack(turnId)))) return
    const turn = readPiTurn(delivered)
    if (turn === undefined) {
      await desk.result(turnId, failed('turn_invalid', 'The turn could not be read by this worker.'))
      return
    }
    const { outcome, settled, fatal } = await this.#run(turn)
    if (!(await taken(desk.result(turnId, outcome))) && outcome.ok) {
      // The host may have found it unusable, and still waits.
      await taken(desk.result(turnId, failed('internal', 'The host did not take the outcome.')))
    }
    if (fatal !== undefined) throw fatal
    if (!settled || !this.#apart) throw new GuestError('internal', 'work of the turn could not be ended')
    this.#prepare(planOf(turn))
  }

  async #run(turn: PiTurn): Promise<PiTurnEnd & { readonly fatal?: unknown }> {
    const { wire, desk, forwarder, workspace } = this.#parts
    const { turnId, nonce, remainingMs } = turn
    const over = new AbortController()
    const address = forwarder.open(nonce)
    const outbox = new Outbox(workspace, turnId)
    const heart = setInterval(() => {
      desk.isOver(turnId).then(
        (isOver) => isOver && over.abort(),
        () => {},
      )
    }, limits.PI_HEARTBEAT_MS)
    const progress = new ProgressReporter({ turnId, send: (piece) => desk.progress(piece) })
    try {
      outbox.open()
      this.#atHand = { speaker: turn.speaker, outbox }
      const waiting = await this.#take(planOf(turn))
      const calls = new TurnCalls({ wire, nonce, remainingMs, over: over.signal })
      const modelUrl = `${address.baseUrl}/anthropic`
      const atHand = { turn, modelUrl, refusedForGood: () => address.refusedForGood, calls, outbox }
      const end = await runPiTurn({ waiting, atHand, progress, over: over.signal })
      return { ...end, outcome: withFiles(end.outcome, outbox) }
    } catch (error) {
      const useless = GuestError.isInstance(error) && error.code === 'content_invalid'
      const outcome = failed('internal', messageOf(error))
      return { outcome, settled: true, ...(useless ? { fatal: error } : {}) }
    } finally {
      clearInterval(heart)
      over.abort()
      address.close()
      this.#apart = killLeftovers()
      this.#atHand = undefined
      outbox.clear()
    }
  }

  /** The session that was made ahead, or a new one when the turn asks for another. */
  async #take(plan: SessionPlan): Promise<WaitingSession> {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting?.key === keyOf(plan)) return waiting.session
    void waiting?.session.then(({ session }) => session.dispose()).catch(() => {})
    return this.#agent.open(plan)
  }

  /** The next turn is probably like the last one. */
  #prepare(plan: SessionPlan): void {
    const session = this.#agent.open(plan)
    session.catch(() => {})
    this.#waiting = { key: keyOf(plan), session }
  }

  #content(profile: string): Promise<LoadedContent> {
    const turn = () => {
      if (this.#atHand === undefined) throw new TypeError('No turn is at hand.')
      return this.#atHand
    }
    const kit: ContentKit = {
      pi: { ...pi },
      saveToOutbox: (name, bytes) => turn().outbox.save(name, bytes),
      contributionExtension: (tools) => contributionExtension(tools, turn),
    }
    const loaded = this.#contents.get(profile) ?? loadContent(this.#parts.content, profile, kit)
    this.#contents.set(profile, loaded)
    return loaded
  }
}

function planOf({ model, profile, mcp }: PiTurn): SessionPlan {
  return { model, profile, mcp }
}

function keyOf(plan: SessionPlan): string {
  return JSON.stringify(plan)
}

function withFiles(outcome: PiOutcome, outbox: Outbox): PiOutcome {
  if (!outcome.ok) return outcome
  const { files, leftOut } = outbox.collect()
  return { ...outcome, files: [...files], ...(leftOut === 0 ? {} : { leftOut }) }
}

/** False when the host says that the turn is not, or no longer, this worker's. */
async function taken(call: Promise<void>): Promise<boolean> {
  try {
    await call
    return true
  } catch (error) {
    if (!GuestError.isInstance(error) || error.code !== 'refused') throw error
    logEvent('turn is over for the host', {})
    return false
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
