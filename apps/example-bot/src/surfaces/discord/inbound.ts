import type { AttachmentRef, ChannelKey, InboundMessage } from '@sandbox/roundtable-plugin'
import {
  type Attachment,
  type Collection,
  type Message,
  MessageReferenceType,
  messageLink,
  PermissionFlagsBits,
} from 'discord.js'
import { BotError } from '../../errors.ts'
import { speakerName } from './speaker-name.ts'

/** The key of a Discord channel. A thread is a channel of its own, and so is a direct conversation. */
export function discordKey(channelId: string): ChannelKey {
  return `discord:${channelId}`
}

/**
 * The Discord id in a channel's key, fit for an address.
 *
 * @throws BotError `discord` for a key that no channel of Discord has
 */
export function channelIdOf(channel: ChannelKey): string {
  const [, id] = /^discord:(\d+)$/.exec(channel) ?? []
  if (id === undefined) throw new BotError('discord', `${channel} is no channel of Discord`)
  return id
}

/**
 * A message as the host knows messages. `undefined` for the bot's own and for Discord's notices (somebody joined, a
 * message was pinned). Whom a channel answers is its claim's to decide.
 */
export function inboundMessage(message: Message<boolean>): InboundMessage | undefined {
  const { author, member, guildId, webhookId } = message
  const me = message.client.user.id
  if (author.id === me || message.system) return undefined
  const reference = referenceOf(message)
  const forwarded = forwardedOf(message)
  const own = message.applicationId === message.client.application.id
  return {
    channel: discordKey(message.channelId),
    messageId: message.id,
    text: withoutMention(message),
    attachments: [...attachmentsOf(message.attachments), ...(forwarded?.attachments ?? [])],
    authorId: author.id,
    authorName: speakerName(member?.displayName ?? author.displayName, author.id),
    authorIsBot: author.bot,
    isDirect: guildId === null,
    mentionsBot: mentions(message),
    repliesToBot: message.mentions.repliedUser?.id === me,
    ...(guildId !== null && { space: guildId }),
    ...(member && { authorRoleIds: [...member.roles.cache.keys()] }),
    ...(webhookId !== null && { integration: { id: webhookId, own } }),
    ...(reference && { reference }),
    ...(forwarded && { forwarded: forwarded.message }),
  }
}

/** False where the bot may not write: a turn there would be paid for nothing. */
export function mayAnswer({ channel, client }: Message<boolean>): boolean {
  if (channel.isDMBased()) return true
  const { SendMessages, SendMessagesInThreads } = PermissionFlagsBits
  const needed = channel.isThread() ? SendMessagesInThreads : SendMessages
  return channel.permissionsFor(client.user)?.has(needed) ?? true
}

/** `@everyone` is no mention of the bot; the role that Discord made for the bot, of the same name, is one. */
function mentions({ mentions: { users, roles }, client }: Message<boolean>): boolean {
  return users.has(client.user.id) || roles.some((role) => role.tags?.botId === client.user.id)
}

function withoutMention({ content, mentions: { roles }, client }: Message<boolean>): string {
  const me = client.user.id
  const ownRoles = roles.filter((role) => role.tags?.botId === me).map(({ id }) => `<@&${id}>`)
  return [`<@${me}>`, `<@!${me}>`, ...ownRoles]
    .reduce((text, mention) => text.replaceAll(mention, ''), content)
    .trim()
}

/** The gateway brings the message that is replied to; one that was deleted is not asked for. */
function referenceOf({ reference, channel }: Message<boolean>): InboundMessage['reference'] {
  if (reference?.messageId === undefined || reference.type === MessageReferenceType.Forward) return undefined
  const referenced = channel.messages.cache.get(reference.messageId)
  if (referenced === undefined) return undefined
  return {
    text: referenced.content,
    attachments: attachmentsOf(referenced.attachments),
    ...(referenced.webhookId && { webhookName: referenced.author.username }),
  }
}

function forwardedOf({ reference, messageSnapshots }: Message<boolean>) {
  if (reference?.type !== MessageReferenceType.Forward) return undefined
  const { channelId, guildId, messageId = '' } = reference
  const snapshot = messageSnapshots.first()
  const url =
    guildId === undefined ? messageLink(channelId, messageId) : messageLink(channelId, messageId, guildId)
  return {
    message: { text: snapshot?.content ?? '', source: discordKey(channelId), url },
    attachments: snapshot === undefined ? [] : attachmentsOf(snapshot.attachments),
  }
}

function attachmentsOf(attachments: Collection<string, Attachment>): AttachmentRef[] {
  return attachments.map(({ url, name, contentType, size }) => ({
    url,
    name,
    size,
    ...(contentType !== null && { contentType }),
  }))
}
