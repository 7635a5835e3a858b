import { SandboxPluginError } from '../errors.ts'
import type {
  ChannelClaim,
  ChannelKey,
  HostLogger,
  InboundMessage,
  ResolvedSpeaker,
  TurnAdmission,
} from '../host-contract.ts'
import type { ChannelQueue } from './channel-queue.ts'
import { ForwardJoin } from './forward-join.ts'
import type { SurfaceRegistry } from './surface-registry.ts'

/** Finds out who wrote a message; `undefined` for somebody the host does not serve. */
export type SpeakerResolver = (message: InboundMessage) => Promise<ResolvedSpeaker | undefined>

/** What the router needs. */
export interface RouterParts {
  /** By descending priority. */
  readonly claims: readonly ChannelClaim[]
  readonly queue: ChannelQueue
  readonly surfaces: SurfaceRegistry
  readonly logger: HostLogger
  readonly forwardJoinMs: number
  readonly resolveSpeaker?: SpeakerResolver
}

const STEERED = '\u21aa\ufe0f'
const WAITING = '\u23f3'

/** Brings one message to the claim that owns its channel. A claim that drops it is the last that was asked. */
export class Router {
  readonly #parts: RouterParts
  readonly #forwards: ForwardJoin
  /** Speakers are resolved one after another in a channel, so that messages are admitted in their order. */
  readonly #admissions = new Map<ChannelKey, Promise<unknown>>()

  constructor(parts: RouterParts) {
    this.#parts = parts
    this.#forwards = new ForwardJoin(parts.forwardJoinMs, (message) => this.#route(message))
  }

  /** Resolves when the message's turn is over, or the message was dropped. Never rejects. */
  async handle(message: InboundMessage): Promise<void> {
    try {
      await this.#forwards.pass(message)
    } catch (err) {
      this.#parts.logger.error({ err }, 'what a surface delivered is no message')
    }
  }

  /** Sends on the forwards that wait for words. */
  flush(): void {
    this.#forwards.flush()
  }

  /** The claim that owns a channel, asked without a space. */
  ownerOf(channel: ChannelKey): ChannelClaim | undefined {
    return this.#parts.claims.find((claim) => claim.owns(channel))
  }

  async #route(inbound: InboundMessage): Promise<void> {
    const { channel } = inbound
    // Who speaks is the host's to say, never a surface's.
    const { speaker: _claimed, ...message } = inbound
    try {
      if (isEmpty(message)) return
      const claim = this.#parts.claims.find((each) => each.owns(channel, message.space))
      if (claim === undefined) return
      const admitted =
        this.#parts.resolveSpeaker === undefined ? claim.admit(message) : await this.#resolve(claim, message)
      if (admitted !== undefined) await this.#run(message, admitted)
    } catch (err) {
      this.#parts.logger.error({ channel, err }, 'a message could not be routed')
    }
  }

  #resolve(claim: ChannelClaim, message: InboundMessage): Promise<TurnAdmission | undefined> {
    const { channel } = message
    const before = this.#admissions.get(channel) ?? Promise.resolve()
    const admission = before.then(async () => {
      const speaker =
        message.authorIsBot || message.integration ? undefined : await this.#parts.resolveSpeaker?.(message)
      return claim.admit(
        speaker === undefined ? message : { ...message, speaker: Object.freeze({ ...speaker }) },
      )
    })
    const settled = admission.catch(() => {})
    this.#admissions.set(channel, settled)
    settled
      .then(() => this.#admissions.get(channel) === settled && this.#admissions.delete(channel))
      .catch(() => {})
    return admission
  }

  async #run({ channel, messageId }: InboundMessage, admission: TurnAdmission): Promise<void> {
    const { queue, logger } = this.#parts
    const { busy } = admission
    const waits = busy !== undefined && queue.size(channel) > 0
    if (waits && (await busy.steer?.()) === true) {
      await this.#mark(channel, () => busy.react(STEERED))
      return
    }
    let begun = false
    try {
      let marked = Promise.resolve()
      const turn = queue.run(channel, async () => {
        begun = true
        // Not waited for: a mark that hangs must not hold the turn. Taken away once it is there, or it would stay.
        if (waits) void marked.then(() => this.#mark(channel, () => busy.unreact(WAITING)))
        await admission.run()
      })
      if (waits) marked = this.#mark(channel, () => busy.react(WAITING))
      await turn
    } catch (err) {
      if (SandboxPluginError.isInstance(err) && err.code === 'closed') {
        logger.info({ channel, messageId }, 'a waiting message was dropped as the host stops')
        if (!begun) admission.dropped?.()
        return
      }
      logger.error({ channel, err }, admission.failure)
    }
  }

  async #mark(channel: ChannelKey, mark: () => Promise<void>): Promise<void> {
    try {
      await mark()
    } catch (err) {
      this.#parts.logger.warn({ channel, err }, 'a message could not be marked')
    }
  }
}

function isEmpty({ text, attachments, forwarded }: InboundMessage): boolean {
  return text.trim() === '' && attachments.length === 0 && (forwarded?.text ?? '').trim() === ''
}
