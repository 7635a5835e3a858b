import {
  inPieces,
  isPiThinkingLevel,
  limits,
  type PiThinkingLevel,
  replyFilesPieces,
} from '@sandbox/protocol'
import { SandboxPluginError } from '../errors.ts'
import { realClock } from './clock.ts'
import type { CallWatch } from './failure-words.ts'
import { lastLines, type PiChannel } from './pi-channel.ts'
import { type PiEvidence, type PiStep, piFailureOfError, piFailureOfOutcome } from './pi-failure.ts'
import type { PiPolicy, ResolvedPiProfile } from './pi-policy.ts'
import type { PiBoundTurn, PiRuntimePorts } from './pi-ports.ts'
import { GrowingText } from './pi-progress.ts'
import type { PiSeat } from './pi-seat.ts'
import type { PiTurnInput } from './pi-turn-input.ts'
import { type TurnEnding, untilAborted } from './turn-ending.ts'
import { describe, type TurnFailure, WorkerEnded } from './turn-failure.ts'
import type { TurnProgress } from './turn-state.ts'
import type { WorkspaceGuard } from './workspace-guard.ts'

/** A file that goes with an answer. Name and bytes are the guest's. */
export interface PiReplyFileData {
  /** One safe name. */
  readonly name: string
  /** 1 byte to 10 MiB. */
  readonly data: Uint8Array
}

/** What the agent answered. Guest text and guest files. */
export interface PiAnswer {
  readonly text: string
  /** At most 10, together 50 MiB. */
  readonly files: readonly PiReplyFileData[]
  /** How many files of the worker could not go along; 0 as a rule. */
  readonly leftOut: number
}

/** Longest wait for the judge of the effort: it must not hold a turn up. */
const JUDGE_MS = 10_000

/** What a {@link PiTurnRun} works with. */
export interface PiTurnParts {
  readonly ports: PiRuntimePorts
  readonly policy: PiPolicy
  readonly profile: ResolvedPiProfile
  readonly channel: PiChannel
  readonly input: PiTurnInput
  readonly ending: TurnEnding
  readonly progress: TurnProgress
  readonly workspaces: WorkspaceGuard
}

/** One turn of a Pi worker: from its place in the channel to an answer, and back to a worker that waits. */
export class PiTurnRun {
  readonly #parts: PiTurnParts
  #step: PiStep | undefined = 'wait'
  #release: (() => void) | undefined
  #starting: Promise<PiSeat> | undefined
  #seat: PiSeat | undefined
  #bound: PiBoundTurn | undefined
  #watch: CallWatch | undefined
  readonly #missing = Promise.withResolvers<'missing'>()
  #delivered = false
  /** The worker said what became of the turn: it is well, and waits for the next. */
  #reported = false

  constructor(parts: PiTurnParts) {
    this.#parts = parts
  }

  /** Hands the turn over and waits for its answer. Never rejects. */
  async answer(): Promise<PiAnswer | TurnFailure> {
    const { channel } = this.#parts
    try {
      const answer = await this.#answer()
      if (!('category' in answer)) channel.answered()
      return answer
    } catch (error) {
      if (error instanceof WorkerEnded && this.#delivered) channel.failed('a worker ended in its turn', error)
      return piFailureOfError(error, this.#evidence)
    }
  }

  /**
   * Ends everything that the turn began, in this order: its signal, its calls, and its worker when that did not say what
   * became of the turn. Returns what went wrong. Never rejects.
   */
  async settle(): Promise<readonly unknown[]> {
    const { ending, channel } = this.#parts
    const cut = ending.cause !== undefined
    ending.end('over')
    const problems: unknown[] = []
    try {
      this.#bound?.release({ abort: true })
    } catch (problem) {
      problems.push(problem)
    }
    // A start that was called off is over only when nothing of it is left.
    await this.#starting?.catch(() => {})
    if (this.#seat !== undefined && this.#delivered && (cut || !this.#reported)) {
      this.#logOutput(this.#seat)
      problems.push(...(await channel.retire(this.#seat)))
    }
    this.#release?.()
    return problems
  }

  get #evidence(): PiEvidence {
    const { ending, channel } = this.#parts
    return { step: this.#step ?? channel.step, ending, trouble: this.#watch?.trouble ?? {} }
  }

  async #answer(): Promise<PiAnswer | TurnFailure> {
    const { channel, input, profile, ending, ports, progress, workspaces } = this.#parts
    const { signal } = ending
    signal.throwIfAborted()
    const judged = this.#judge()
    this.#release = await channel.take(signal)
    await workspaces.admit(input.channel, signal)
    this.#step = undefined
    const warm = channel.seat?.usable === true
    this.#starting = channel.ensure(profile, signal)
    const seat = await untilAborted(this.#starting, signal)
    this.#step = 'memory'
    const memory = await this.#memory()
    this.#step = 'attachments'
    for (const file of input.attachments) await ports.layout.putAttachment(input.channel, file)
    const thinking = await untilAborted(judged, signal)
    channel.level = thinking
    this.#step = 'bind'
    this.#seat = seat
    const bound = this.#bind(seat, thinking)
    const { workerId, posture } = seat
    progress.servedBy({ workerId, warm: warm && seat === channel.seat, ...(posture && { posture }) })
    progress.enter('bound')
    const turn = await this.#turn(seat, { bound, thinking, memory })
    this.#step = 'deliver'
    const outcome = seat.broker.desk.deliver(turn, {
      deadline: ending.deadline,
      signal,
      onProgress: this.#onProgress(),
    })
    this.#delivered = true
    progress.enter('answering')
    const said = await untilAborted(Promise.race([outcome, this.#missing.promise]), seat.gone)
    this.#reported = true
    // An agent may ask again for a while. Its worker is not at fault: it hears that the turn is over, and takes the next.
    if (said === 'missing') return noCredential()
    if (said.ok) return await checkedAnswer(said, signal)
    const late = performance.now() >= ending.deadline - limits.SOFT_DEADLINE_MS
    return piFailureOfOutcome(said, this.#evidence, late)
  }

  #bind(seat: PiSeat, thinking: PiThinkingLevel): PiBoundTurn {
    const { input, profile, ending } = this.#parts
    const { channel, speaker, turnId } = input
    const { signal, deadline } = ending
    signal.throwIfAborted()
    this.#watch = seat.watch(turnId, () => this.#missing.resolve('missing'))
    const context = { channel, speaker: { ...speaker }, profile: profile.name, thinking, deadline, signal }
    this.#bound = seat.broker.bind(context, { turnId })
    ending.spending = this.#bound
    return this.#bound
  }

  async #turn(
    seat: PiSeat,
    {
      bound,
      thinking,
      memory,
    }: { bound: PiBoundTurn; thinking: PiThinkingLevel; memory: string | undefined },
  ) {
    const { input, profile, policy, ending } = this.#parts
    const { turnId, text, speaker, images, attachments } = input
    return {
      turnId,
      nonce: bound.nonce,
      text,
      speaker: { ...speaker },
      profile: profile.name,
      thinking,
      model: profile.model,
      timeZone: policy.timeZone,
      ...(profile.prompt === undefined ? {} : { prompt: profile.prompt }),
      ...(memory === undefined ? {} : { memory }),
      attachments: attachments.map(({ name, mimeType, data }) => ({
        name,
        bytes: data.length,
        ...(mimeType === undefined ? {} : { mimeType }),
      })),
      images: images.map(({ mimeType, data }) => ({ mimeType, data })),
      mcp: [...(await seat.broker.mcpSpecs({ signal: ending.signal }))],
    }
  }

  /** Asks how hard the model may think, beside the start of the worker. A judge that fails costs no turn. */
  async #judge(): Promise<PiThinkingLevel> {
    const { ports, channel, input, ending } = this.#parts
    const previous = channel.level
    const { judge } = ports
    if (judge === undefined) return previous ?? 'low'
    const { speaker, text } = input
    const enough = new AbortController()
    const giveUp = () => enough.abort(ending.signal.reason)
    ending.signal.addEventListener('abort', giveUp)
    const cancel = (ports.clock ?? realClock).after(JUDGE_MS, () => enough.abort(judgeLate()))
    try {
      const question = {
        channel: input.channel,
        speaker: { ...speaker },
        text,
        signal: enough.signal,
        ...(previous === undefined ? {} : { previous }),
      }
      const level: unknown = await untilAborted(asked(judge, question), enough.signal)
      if (isPiThinkingLevel(level)) return level
      throw new SandboxPluginError('hook_failed', 'The judge gave no level: low, medium, high or xhigh.')
    } catch (cause) {
      if (!ending.signal.aborted) {
        ports.logger?.warn(
          { channel: input.channel, turnId: input.turnId, cause: ports.scrub(describe(cause)) },
          'the effort could not be judged; it stays as it was',
        )
      }
      return previous ?? 'low'
    } finally {
      cancel()
      ending.signal.removeEventListener('abort', giveUp)
    }
  }

  async #memory(): Promise<string | undefined> {
    const { ports, input, ending } = this.#parts
    if (ports.memory === undefined) return undefined
    const { channel, speaker } = input
    const wanted = { channel, speaker: { ...speaker }, signal: ending.signal }
    const block: unknown = await untilAborted(asked(ports.memory, wanted), ending.signal)
    if (block === undefined || block === '') return undefined
    if (typeof block === 'string' && block.length <= limits.PI_TEXT_CHARS) return block
    throw new SandboxPluginError(
      'hook_failed',
      `The memory block must be a text of at most ${limits.PI_TEXT_CHARS} characters.`,
    )
  }

  #onProgress() {
    const { input, ending } = this.#parts
    const grown = new GrowingText()
    return ({ at, text }: { at: number; text: string }) => {
      if (ending.signal.aborted || input.onProgress === undefined) return
      try {
        input.onProgress({ turnId: input.turnId, ...grown.add(at, text) })
      } catch {
        // A listener's fault is not the turn's.
      }
    }
  }

  /** Before it is gone. Guest text: into a warning, never into an error line. */
  #logOutput(seat: PiSeat): void {
    const { ports, input } = this.#parts
    const output = ports.scrub(lastLines(seat.output))
    ports.logger?.warn({ channel: input.channel, turnId: input.turnId, output }, 'what the worker said')
  }
}

/** Calls a function of the operator; a throw is a rejection. */
async function asked<Question, Answer>(
  hook: (question: Question) => Answer | Promise<Answer>,
  question: Question,
): Promise<Answer> {
  return await hook(question)
}

function judgeLate(): SandboxPluginError {
  return new SandboxPluginError('hook_failed', `The judge gave no level within ${JUDGE_MS} milliseconds.`)
}

function noCredential(): TurnFailure {
  return { category: 'credential', trouble: 'missing', cause: 'no credential for this channel and speaker' }
}

/** The desk has checked the answer; it is checked here again, since it goes to people. Others run meanwhile. */
async function checkedAnswer(
  said: {
    readonly text: string
    readonly files: readonly { readonly name: string; readonly data: string }[]
    readonly leftOut?: number
  },
  signal: AbortSignal,
): Promise<PiAnswer | TurnFailure> {
  const { text, files, leftOut = 0 } = said
  if (text.trim() === '' || text.length > limits.REPLY_TEXT_CHARS) {
    return { category: 'worker', cause: 'the worker gave an empty answer, or one that is too long' }
  }
  const problem = await inPieces(replyFilesPieces(files), signal)
  if (problem !== undefined) return { category: 'worker', cause: `the worker's files: ${problem}` }
  const decoded = files.map(({ name, data }) => ({
    name,
    data: Uint8Array.from(Buffer.from(data, 'base64')),
  }))
  return { text, files: decoded, leftOut }
}
