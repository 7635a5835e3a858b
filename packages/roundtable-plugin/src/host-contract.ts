/**
 * What this package needs of a chat host, as structural types: pi-roundtable 0.8 and 0.9 satisfy them, and so
 * does the small host under `./host`. Types only, so that neither a host nor its types must be installed.
 */

/** `<surface>:<id>`, split at the first colon. */
export type ChannelKey = `${string}:${string}`

/** What a person may do on a host. */
export type Tier = 'member' | 'admin' | 'owner'

/** Whom a host resolved an author to. Set by the host's router from 0.9 on, never by a surface. */
export interface ResolvedSpeaker {
  id: string
  name: string
  tier: Tier
  principalId?: string
}

/** Structured lines; a pino logger satisfies it. Error lines may reach an ops channel: no secrets, no guest text. */
export interface HostLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** The host's language, time zone (IANA name) and clock. */
export interface HostEnv {
  readonly locale: string
  readonly timeZone: string
  now(): Date
}

/** Names a service. Matched by `id` alone; `__service` is a phantom for inference and is never set. */
export interface ServiceKey<T> {
  readonly id: string
  readonly __service?: () => T
  readonly absent?: string
}

/** The services that plugins share. `find` is `undefined` only when nobody declares the key. */
export interface HostServices {
  get<T>(key: ServiceKey<T>): T
  find<T>(key: ServiceKey<T>): T | undefined
  provide<T>(key: ServiceKey<T>, value: T): void
}

/** One FIFO per channel. Awaiting `run` of a channel from inside a task of that channel deadlocks. */
export interface ChannelQueuePort {
  run<T>(channel: ChannelKey, task: () => Promise<T>): Promise<T>
  /** Running and waiting tasks. */
  size(channel: ChannelKey): number
}

/** A file that goes with a reply: raw bytes. */
export interface ReplyFile {
  name: string
  data: Uint8Array
}

/** What is posted: chunks in order, then files. */
export interface OutboundReply {
  chunks: string[]
  files?: ReplyFile[]
  thinking?: string
  card?: Uint8Array
}

/** The chat surfaces, addressed by channel. Usable from a running turn, not during setup. */
export interface HostSurfaces {
  of(channel: ChannelKey): { readonly supportsFiles?: boolean } | undefined
  sendReply(channel: ChannelKey, reply: OutboundReply): Promise<void>
  startTyping(channel: ChannelKey): () => void
  showStop(channel: ChannelKey): () => void
  react(channel: ChannelKey, messageId: string, emoji: string): Promise<void>
  unreact(channel: ChannelKey, messageId: string, emoji: string): Promise<void>
}

/** What a plugin's setup receives. */
export interface HostContext {
  logger: HostLogger
  env: HostEnv
  queue: ChannelQueuePort
  surfaces: HostSurfaces
  services: HostServices
  /** The host's own login for a provider. A secret: read at each use, never logged. */
  apiKey(provider: string): Promise<string | undefined>
}

/** A file of a message. Nothing has been downloaded. `size` is in bytes. */
export interface AttachmentRef {
  url: string
  name: string
  contentType?: string
  size: number
}

/** One message as a surface reports it. */
export interface InboundMessage {
  channel: ChannelKey
  messageId: string
  text: string
  attachments: AttachmentRef[]
  authorId: string
  authorName: string
  authorIsBot: boolean
  authorRoleIds?: readonly string[]
  space?: string
  isDirect: boolean
  mentionsBot: boolean
  repliesToBot: boolean
  integration?: { id: string; own: boolean }
  reference?: { text: string; attachments: AttachmentRef[]; webhookName?: string }
  forwarded?: { text: string; source: ChannelKey; url: string }
  /** From 0.9 on, set by the router alone. */
  speaker?: ResolvedSpeaker
}

/** How a scheduled turn ended. */
export type ScheduledOutcome =
  | { status: 'ran' }
  | { status: 'failed'; error: string }
  | { status: 'skipped'; reason: string }

/** A turn that nobody wrote: a schedule, a report. */
export interface BackgroundTurn {
  channel: ChannelKey
  target: string
  author: { id: string; name: string }
  tier?: Tier
  turnId: string
  text: string
  report?: boolean
}

/** A message that was taken: `run` is executed in the channel's queue, `failure` is logged when it rejects. */
export interface TurnAdmission {
  kind: 'turn'
  run(): Promise<void>
  failure: string
  /** Called when the message will never be run. A host that does not know it (0.8, 0.9) does not call it. */
  dropped?(): void
  busy?: {
    steer?(): Promise<boolean>
    react(emoji: string): Promise<void>
    unreact(emoji: string): Promise<void>
  }
}

/** Who answers in which channels. `owns`, `admit` and `stop` are synchronous and must not throw. */
export interface ChannelClaim {
  name: string
  priority: number
  owns(channel: ChannelKey, space?: string): boolean
  admit(message: InboundMessage): TurnAdmission | undefined
  background?(turn: BackgroundTurn): Promise<ScheduledOutcome>
  startFresh(channel: ChannelKey): Promise<string>
  stop?(channel: ChannelKey): boolean
  deleteConversation?(channel: ChannelKey): Promise<void>
  postsInPlace?: boolean
  /** From 0.9 on; 0.8 ignores it. */
  takesSystemReports?: boolean
}

/** Something with a lifetime. `busy` lists work that the channel queue does not know. */
export interface HostService {
  name: string
  start?(): Promise<void> | void
  startInBackground?(): Promise<void>
  stop?(): Promise<void> | void
  busy?(): string[]
}

/** What setup returns. The arrays of the host are mutable, so `services` is too. */
export interface SandboxContribution {
  channels?: readonly ChannelClaim[]
  services?: HostService[]
}

/** A plugin, as hosts link it. */
export interface SandboxPlugin {
  name: string
  provides?: readonly ServiceKey<unknown>[]
  setup(context: HostContext): SandboxContribution | Promise<SandboxContribution>
}

/** A chat service, as a host drives it. Only `supportsFiles: true` surfaces are given files. */
export interface ChatSurface {
  /** The prefix of its channel keys: no colon, no space. */
  readonly surface: string
  readonly supportsFiles?: boolean
  start(deliver: (message: InboundMessage) => Promise<void>): Promise<void>
  stop?(): Promise<void>
  sendReply(channel: ChannelKey, reply: OutboundReply): Promise<void>
  startTyping?(channel: ChannelKey): () => void
  showStop?(channel: ChannelKey): () => void
  react?(channel: ChannelKey, messageId: string, emoji: string): Promise<void>
  unreact?(channel: ChannelKey, messageId: string, emoji: string): Promise<void>
}
