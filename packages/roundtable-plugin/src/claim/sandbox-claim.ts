import type { SandboxSpeaker } from '@sandbox/credential-scope'
import { limits } from '@sandbox/protocol'
import { errorText } from '../error-text.ts'
import { SandboxPluginError } from '../errors.ts'
import type {
  ChannelClaim,
  ChannelKey,
  HostLogger,
  HostSurfaces,
  InboundMessage,
  TurnAdmission,
} from '../host-contract.ts'
import type { SealedRuntime } from '../runtime/sealed-runtime.ts'
import type { CleanupFailed } from '../runtime/turn-failure.ts'
import { isSandboxAddress } from './address.ts'
import { admitReadable, turnAdmission } from './admission.ts'
import type { AdmissionLimits } from './admission-limits.ts'
import { NOT_TAKEN_TEXT, STOPPING_TEXT, splitReply, THROWN_TEXT, TOO_LONG_TEXT } from './answer.ts'
import { deliver } from './deliver.ts'
import { showAll } from './shown.ts'
import { turnText } from './turn-text.ts'

/** What the claim needs. */
export interface SandboxClaimParts {
  readonly channels: { has(channel: ChannelKey): boolean }
  readonly runtime: Pick<SealedRuntime, 'runTurn' | 'startFresh' | 'stop' | 'deleteConversation'>
  readonly surfaces: Pick<HostSurfaces, 'sendReply' | 'startTyping'>
  /** Hears why a message was not answered, or an answer not delivered. Must not throw. */
  readonly logger: HostLogger
  /** Says which messages are taken. Omitted = all of them. */
  readonly limits?: AdmissionLimits
  /**
   * True on a host that resolves speakers (0.9): only messages with one are answered, and its `principalId` joins the
   * scope. Otherwise nothing of `message.speaker` is looked at.
   */
  readonly needsSpeaker?: boolean
  /** How long a reply may take to be posted before the channel goes on without it. Omitted = two minutes. */
  readonly deliveryMs?: number
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
}

/** Above the agent server's 100, so that an enabled channel's messages never reach an agent with host tools. */
const PRIORITY = 200

/** Answers the messages of enabled channels from sealed workers. */
export function sandboxClaim(parts: SandboxClaimParts): ChannelClaim {
  const { channels, runtime } = parts
  return {
    name: 'sandbox',
    priority: PRIORITY,
    postsInPlace: true,
    takesSystemReports: false,
    // Not a word about the space: the host leaves it out for stop, start over and deletion.
    owns: (channel) => channels.has(channel),
    admit: (message) => admitReadable(parts, () => admit(parts, message)),
    background: async () => ({ status: 'skipped', reason: 'sandbox channels take no background turns' }),
    startFresh: async (channel) => {
      runtime.startFresh(channel)
      return 'sandbox'
    },
    stop: (channel) => runtime.stop(channel),
    deleteConversation: (channel) => runtime.deleteConversation(channel),
  }
}

function admit(parts: SandboxClaimParts, message: InboundMessage): TurnAdmission | undefined {
  const { channel } = message
  if (!parts.channels.has(channel) || !isSandboxAddress(message)) return undefined
  const principalId = parts.needsSpeaker === true ? message.speaker?.principalId : undefined
  if (parts.needsSpeaker === true && !principalId) {
    // Nobody whom the host serves: no word about that. A speaker who is no person is the host's fault.
    if (message.speaker !== undefined) {
      parts.logger.warn(
        { channel, speaker: message.authorId },
        'a message was not taken: the host says who speaks, but not with which principalId',
      )
    }
    return undefined
  }
  // Copied now: the turn may wait in the queue while somebody changes the message.
  const speaker = Object.freeze({
    id: message.authorId,
    name: message.authorName,
    ...(principalId !== undefined && { principalId }),
  })
  const text = turnText(message)
  const admitted = parts.limits?.admit(channel, message.authorId)
  if (admitted?.ok === false) {
    parts.logger.info(
      { channel, speaker: message.authorId, limit: admitted.reason },
      'a message was not taken',
    )
    if (admitted.words !== undefined) void deliver(parts, channel, { chunks: splitReply(admitted.words) })
    return undefined
  }
  return turnAdmission(() => answer(parts, channel, speaker, text), admitted?.done)
}

async function answer(
  parts: SandboxClaimParts,
  channel: ChannelKey,
  speaker: SandboxSpeaker,
  text: string,
): Promise<void> {
  // The channel may have been turned off while the message waited.
  if (!parts.channels.has(channel)) return
  const hide = showAll(parts, channel, [() => parts.surfaces.startTyping(channel)])
  try {
    const reply = await parts.runtime.runTurn(channel, speaker, text).then(
      (turn) => turn.text,
      (error) => wordsFor(parts, { channel, text }, error),
    )
    await deliver(parts, channel, { chunks: splitReply(reply) })
  } finally {
    hide()
  }
}

/** Exception text never reaches the chat; the log gets it scrubbed, with the channel. */
function wordsFor(
  parts: SandboxClaimParts,
  { channel, text }: { channel: ChannelKey; text: string },
  error: unknown,
): string {
  const cause = parts.scrub(errorText(error))
  const known = SandboxPluginError.isInstance(error)
  const fields = { channel, category: known ? error.code : 'unknown', cause }
  if (known && error.code === 'input_invalid') {
    parts.logger.warn(fields, 'a message was refused')
    return text.length > limits.TURN_TEXT_CHARS ? TOO_LONG_TEXT : NOT_TAKEN_TEXT
  }
  if (known && error.code === 'closed') {
    parts.logger.info(fields, 'a message was not answered: the host stops')
    return STOPPING_TEXT
  }
  parts.logger.error(fields, 'a sandbox turn threw')
  // What was answered is posted: somebody paid for it.
  const { answer } = known ? (error as Partial<CleanupFailed>) : {}
  return answer ?? THROWN_TEXT
}
