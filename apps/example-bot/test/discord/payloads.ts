import {
  BOT,
  BOT_ROLE,
  DIRECT,
  GENERAL,
  GUILD,
  MUTED,
  memberOf,
  OTHER,
  type Person,
  snowflake,
  THREAD,
  userOf,
} from './people.ts'

/** A file of a message. */
export interface SaidFile {
  readonly name: string
  readonly url: string
  readonly size: number
  readonly contentType?: string
}

/** What somebody says. */
export interface Said {
  readonly by: Person
  readonly text: string
  /** Default: the general channel. */
  readonly in?: string
  readonly files?: readonly SaidFile[]
  /** The message that this one replies to, as the API wrote it. */
  readonly replyTo?: MessagePayload
  /** A reply that does not ping its author. */
  readonly silently?: boolean
  /** The message that this one forwards. */
  readonly forwards?: MessagePayload
  readonly webhookId?: string
  /** Of a notice: 7 is "joined". */
  readonly type?: number
}

// biome-ignore lint/suspicious/noExplicitAny: Discord's JSON, written by hand
export type MessagePayload = any

/** `<@id>`: what a person's mention looks like on the wire. */
export function mention({ id }: Person): string {
  return `<@${id}>`
}

/** A message as the gateway brings it. People who may be mentioned are `known`. */
export function messageOf(said: Said, known: readonly Person[]): MessagePayload {
  const { by, text, in: channel = GENERAL, replyTo, forwards } = said
  const mentioned = known.filter(({ id }) => text.includes(`<@${id}>`) || text.includes(`<@!${id}>`))
  const replied = known.find(({ id }) => id === replyTo?.author.id && said.silently !== true)
  const people = replied === undefined || mentioned.includes(replied) ? mentioned : [...mentioned, replied]
  const guild = channel === DIRECT || said.webhookId !== undefined ? {} : { member: memberOf(by) }
  return {
    id: snowflake(),
    channel_id: channel,
    channel_type: channel === DIRECT ? 1 : channel === THREAD ? 11 : 0,
    ...(channel === DIRECT ? {} : { guild_id: GUILD }),
    ...guild,
    author: userOf(by),
    content: text,
    timestamp: new Date().toISOString(),
    edited_timestamp: null,
    tts: false,
    mention_everyone: text.includes('@everyone'),
    mentions: people.map((person) => ({ ...userOf(person), member: memberOf(person) })),
    mention_roles: text.includes(BOT_ROLE) ? [BOT_ROLE] : [],
    attachments: (said.files ?? []).map(attachmentOf),
    embeds: [],
    pinned: false,
    type: said.type ?? (replyTo === undefined ? 0 : 19),
    ...(said.webhookId !== undefined && { webhook_id: said.webhookId }),
    ...(replyTo && { message_reference: pointTo(replyTo, 0), referenced_message: replyTo }),
    ...(forwards && {
      message_reference: pointTo(forwards, 1),
      message_snapshots: [{ message: { ...forwards, mentions: [] } }],
    }),
  }
}

function pointTo(message: MessagePayload, type: number) {
  const { id, channel_id, guild_id } = message
  return { type, message_id: id, channel_id, ...(guild_id !== undefined && { guild_id }) }
}

function attachmentOf({ name, url, size, contentType }: SaidFile) {
  return {
    id: snowflake(),
    filename: name,
    size,
    url,
    proxy_url: url,
    ...(contentType !== undefined && { content_type: contentType }),
  }
}

/** A slash command as the gateway brings it. `path` is `roundtable sandbox on` or `keys explain`. */
export function commandOf(command: {
  readonly by: Person
  readonly path: string
  readonly in?: string
  /** Values of user options. */
  readonly users?: Readonly<Record<string, Person>>
}) {
  const { by, in: channel = GENERAL, users = {} } = command
  const [name = '', ...rest] = command.path.split(' ')
  const values = Object.entries(users).map(([key, { id }]) => ({ name: key, type: 6, value: id }))
  const options = rest.reduceRight<object[]>(
    (inner, word, depth) => [{ name: word, type: depth === rest.length - 1 ? 1 : 2, options: inner }],
    values,
  )
  const resolved = Object.fromEntries(Object.values(users).map((person) => [person.id, userOf(person)]))
  return {
    id: snowflake(),
    application_id: BOT.id,
    type: 2,
    token: `interaction-${snowflake()}`,
    version: 1,
    channel_id: channel,
    channel: { id: channel, type: channel === DIRECT ? 1 : 0 },
    ...(channel === DIRECT
      ? { user: userOf(by) }
      : { guild_id: GUILD, member: { ...memberOf(by), user: userOf(by), permissions: '0' } }),
    locale: 'en-US',
    entitlements: [],
    authorizing_integration_owners: {},
    app_permissions: '0',
    attachment_size_limit: 10_485_760,
    data: { id: snowflake(), name, type: 1, options, resolved: { users: resolved } },
  }
}

/** The server as the gateway brings it after the login. */
export function guildOf(people: readonly Person[]) {
  const role = {
    color: 0,
    hoist: false,
    position: 0,
    permissions: '0',
    managed: false,
    mentionable: false,
    flags: 0,
  }
  const channel = { guild_id: GUILD, position: 0, permission_overwrites: [], nsfw: false, topic: null }
  const mute = { id: BOT_ROLE, type: 0, allow: '0', deny: '2048' }
  return {
    id: GUILD,
    name: 'The server',
    owner_id: people[0]?.id,
    roles: [
      { ...role, id: GUILD, name: '@everyone' },
      // With the permissions of the README's invitation.
      {
        ...role,
        id: BOT_ROLE,
        name: BOT.name,
        managed: true,
        tags: { bot_id: BOT.id },
        permissions: '274877942784',
      },
    ],
    emojis: [],
    stickers: [],
    features: [],
    preferred_locale: 'en-US',
    member_count: people.length,
    joined_at: '2026-01-01T00:00:00.000Z',
    large: false,
    unavailable: false,
    members: people.map((person) => ({ ...memberOf(person), user: userOf(person) })),
    channels: [
      { ...channel, id: GENERAL, name: 'general', type: 0 },
      { ...channel, id: OTHER, name: 'other', type: 0 },
      { ...channel, id: MUTED, name: 'muted', type: 0, permission_overwrites: [mute] },
    ],
    threads: [
      {
        id: THREAD,
        guild_id: GUILD,
        parent_id: GENERAL,
        name: 'a thread',
        type: 11,
        thread_metadata: {
          archived: false,
          auto_archive_duration: 60,
          archive_timestamp: '2026-01-01T00:00:00.000Z',
          locked: false,
        },
        message_count: 0,
        member_count: 0,
      },
    ],
    presences: [],
    voice_states: [],
    stage_instances: [],
    guild_scheduled_events: [],
    soundboard_sounds: [],
  }
}
