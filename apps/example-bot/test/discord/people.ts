import type { APIUser } from 'discord.js'

/** Ids as Discord makes them: they grow with time, and a number cannot hold them. */
let last = 1_100_000_000_000_000_000n

/** A fresh id, larger than every one before. */
export function snowflake(): string {
  last += 1n
  return String(last)
}

/** Somebody on the stand-in's server. */
export interface Person {
  readonly id: string
  readonly name: string
  readonly bot?: boolean
  /** As the server shows them. */
  readonly nick?: string
}

/** The bot, and three people. The owner is the one whom the bot's configuration names. */
export const BOT: Person = { id: '500000000000000001', name: 'parrot', bot: true }
export const OLGA: Person = { id: '500000000000000011', name: 'olga' }
export const ANN: Person = { id: '500000000000000012', name: 'ann', nick: 'Ann of the team' }
export const BEN: Person = { id: '500000000000000013', name: 'ben' }

/** The server, its channels, and the role that Discord made for the bot. */
export const GUILD = '600000000000000001'
export const BOT_ROLE = '600000000000000002'
export const GENERAL = '700000000000000001'
export const OTHER = '700000000000000002'
export const THREAD = '700000000000000003'
/** Nobody but its owner may write there. */
export const MUTED = '700000000000000005'
export const DIRECT = '700000000000000004'

/** A user as Discord's API writes one. */
export function userOf({ id, name, bot = false }: Person): APIUser {
  return { id, username: name, discriminator: '0', global_name: null, avatar: null, bot } as APIUser
}

/** A member as Discord's API writes one, without its user. */
export function memberOf(person: Person) {
  return {
    nick: person.nick ?? null,
    roles: person.id === BOT.id ? [BOT_ROLE] : [],
    joined_at: '2026-01-01T00:00:00.000Z',
    deaf: false,
    mute: false,
    flags: 0,
  }
}
