import type { CollectedAttachments } from '../attachments/index.ts'
import { errorText } from '../error-text.ts'
import type {
  ChannelClaim,
  ChannelKey,
  HostLogger,
  HostSurfaces,
  InboundMessage,
  OutboundReply,
  TurnAdmission,
} from '../host-contract.ts'
import type { PiSandboxRuntime } from '../pi-defaults.ts'
import type { PiProgressUpdate } from '../runtime/pi-progress.ts'
import type { PiTurnReply } from '../runtime/pi-runtime.ts'
import { isSandboxAddress } from './address.ts'
import { admitReadable, turnAdmission } from './admission.ts'
import type { AdmissionLimits } from './admission-limits.ts'
import { splitReply } from './answer.ts'
import { deliver } from './deliver.ts'
import { copyOf } from './message-copy.ts'
import { showAll } from './shown.ts'
import { turnText } from './turn-text.ts'

/** What the claim needs. */
export interface PiClaimParts {
  readonly channels: { has(channel: ChannelKey): boolean }
  readonly runtime: Pick<PiSandboxRuntime, 'runTurn' | 'startFresh' | 'deleteConversation'>
  readonly surfaces: Pick<HostSurfaces, 'of' | 'sendReply' | 'startTyping' | 'showStop'>
  /** Hears why a message was not answered, or an answer not delivered. Must not throw. */
  readonly logger: HostLogger
  /** The profile that a channel runs under. */
  profileOf(channel: ChannelKey): string
  /** Fetches what came with a message. Omitted = it is not fetched, and the agent is told so. */
  collect?(message: InboundMessage, signal: AbortSignal): Promise<CollectedAttachments>
  /** An answer as it grows; may never be called. */
  onProgress?(channel: ChannelKey, progress: PiProgressUpdate): void
  /** Says which messages are taken. Omitted = all of them. */
  readonly limits?: AdmissionLimits
  /** True on a host that resolves speakers (0.9): only messages with one are answered. */
  readonly needsSpeaker?: boolean
  /** How long a reply may take to be posted before the channel goes on without it. Omitted = two minutes. */
  readonly deliveryMs?: number
  /** Takes secrets out of a text for the log. */
  scrub(text: string): string
}

/** Above the agent server's 100, so that an enabled channel's messages never reach an agent with host tools. */
const PRIORITY = 200

/** Answers the messages of enabled channels from the Pi worker of each. */
export function piClaim(parts: PiClaimParts): ChannelClaim {
  const { channels, runtime } = parts
  /** The turns that run, or fetch what they need. */
  const running = new Map<ChannelKey, AbortController>()
  return {
    name: 'pi-sandbox',
    priority: PRIORITY,
    postsInPlace: true,
    takesSystemReports: false,
    // Not a word about the space: the host leaves it out for stop, start over and deletion.
    owns: (channel) => channels.has(channel),
    admit: (message) => admitReadable(parts, () => admit(parts, running, message)),
    background: async () => ({ status: 'skipped', reason: 'sandbox channels take no background turns' }),
    async startFresh(channel) {
      await runtime.startFresh(channel)
      return 'pi-sandbox'
    },
    stop(channel) {
      const turn = running.get(channel)
      if (turn === undefined || turn.signal.aborted) return false
      turn.abort()
      return true
    },
    deleteConversation: (channel) => runtime.deleteConversation(channel),
  }
}

type Running = Map<ChannelKey, AbortController>

function admit(parts: PiClaimParts, running: Running, given: InboundMessage): TurnAdmission | undefined {
  const { channel } = given
  if (!parts.channels.has(channel) || !isSandboxAddress(given)) return undefined
  if (parts.needsSpeaker === true && given.speaker === undefined) return undefined
  // Copied now: the turn may wait in the queue while somebody changes the message.
  const message = copyOf(given)
  const admitted = parts.limits?.admit(channel, given.authorId)
  if (admitted?.ok === false) {
    parts.logger.info({ channel, speaker: given.authorId, limit: admitted.reason }, 'a message was not taken')
    if (admitted.words !== undefined) void deliver(parts, channel, { chunks: splitReply(admitted.words) })
    return undefined
  }
  return turnAdmission(() => answer(parts, running, message), admitted?.done)
}

async function answer(parts: PiClaimParts, running: Running, message: InboundMessage): Promise<void> {
  const { channel } = message
  // The channel may have been turned off while the message waited.
  if (!parts.channels.has(channel)) return
  const turn = new AbortController()
  running.set(channel, turn)
  const { surfaces } = parts
  const hide = showAll(parts, channel, [
    () => surfaces.startTyping(channel),
    () => surfaces.showStop(channel),
  ])
  try {
    const reply = await runTurn(parts, message, turn.signal)
    await deliver(parts, channel, replyOf(reply, surfaces.of(channel)?.supportsFiles === true))
  } finally {
    running.delete(channel)
    hide()
  }
}

async function runTurn(
  parts: PiClaimParts,
  message: InboundMessage,
  signal: AbortSignal,
): Promise<PiTurnReply> {
  const { channel, authorId, authorName } = message
  const collected = await collect(parts, message, signal)
  const { onProgress } = parts
  return await parts.runtime.runTurn({
    channel,
    profile: parts.profileOf(channel),
    speaker: { id: authorId, name: authorName },
    text: turnText(message, collected === undefined ? undefined : noteOf(collected)),
    ...(collected && { attachments: collected.attachments, images: collected.images }),
    signal,
    ...(onProgress && {
      onProgress: (progress: PiProgressUpdate) => onProgress.call(parts, channel, progress),
    }),
  })
}

/** A fetch that fails as a whole takes only the attachments with it; one that was stopped ends as its turn does. */
async function collect(
  parts: PiClaimParts,
  message: InboundMessage,
  signal: AbortSignal,
): Promise<CollectedAttachments | undefined> {
  const some = message.attachments.length + (message.reference?.attachments.length ?? 0) > 0
  if (parts.collect === undefined || !some) return undefined
  try {
    return await parts.collect(message, signal)
  } catch (error) {
    if (!signal.aborted) {
      const cause = parts.scrub(errorText(error))
      parts.logger.error({ channel: message.channel, cause }, 'attachments could not be fetched')
    }
    return undefined
  }
}

/** What the agent is told of attachments that it cannot see; of the others it hears with its turn. */
function noteOf({ failures }: CollectedAttachments): string {
  if (failures.length === 0) return ''
  return `[Not everything that came with this message is there:]\n${failures.map(({ text }) => `> ${text}`).join('\n')}`
}

/** Files go where the surface takes some. What cannot be shown is said, and the text is never lost for it. */
function replyOf(reply: PiTurnReply, supportsFiles: boolean): OutboundReply {
  if (!reply.ok) return { chunks: splitReply(reply.text) }
  const { text, files, leftOut } = reply
  const missing = leftOut + (supportsFiles ? 0 : files.length)
  const note =
    missing === 0 ? '' : `\n\n(${missing} ${missing === 1 ? 'file' : 'files'} could not be posted here.)`
  const chunks = splitReply(text + note)
  if (!supportsFiles || files.length === 0) return { chunks }
  return { chunks, files: files.map(({ name, data }) => ({ name, data })) }
}
