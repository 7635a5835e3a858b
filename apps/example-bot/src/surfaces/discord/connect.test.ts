import { type Client, Events } from 'discord.js'
import { expect, test } from 'vitest'
import { mention } from '../../../test/discord/payloads.ts'
import { ANN, BOT, GENERAL, GUILD, snowflake } from '../../../test/discord/people.ts'
import { openStandIn } from '../../../test/discord/stand-in.ts'
import { connect, openGateway } from './connect.ts'
import { inboundMessage } from './inbound.ts'

function messagesOf(client: Client): number {
  const channel = client.channels.cache.get(GENERAL)
  return channel?.isTextBased() ? channel.messages.cache.size : 0
}

test('what is remembered has an end, and the bot still knows itself and what is replied to', async () => {
  const discord = await openStandIn()
  const off = new AbortController()
  const client = openGateway({ api: discord.api, off: off.signal })
  const heard: ReturnType<typeof inboundMessage>[] = []
  client.on(Events.MessageCreate, (message) => heard.push(inboundMessage(message)))
  try {
    await connect(client, { token: discord.token, timeoutMs: 60_000, off: off.signal })
    const first = discord.say({ by: ANN, text: 'the first word' })
    for (let n = 0; n < 600; n += 1)
      discord.say({ by: { id: snowflake(), name: `guest ${n}` }, text: `${n}` })
    discord.say({ by: ANN, text: `${mention(BOT)} what did I say?`, replyTo: first })
    await expect.poll(() => heard.at(-1)?.mentionsBot, { timeout: 20_000 }).toBe(true)
    expect(heard).toHaveLength(602)
    expect(heard.at(-1)).toMatchObject({
      authorName: 'Ann of the team',
      reference: { text: 'the first word' },
    })
    expect(client.users.cache.size).toBeLessThanOrEqual(501)
    expect(client.guilds.cache.get(GUILD)?.members.cache.size).toBeLessThanOrEqual(501)
    expect(messagesOf(client)).toBeLessThanOrEqual(11)
  } finally {
    off.abort()
    await client.destroy()
    await discord[Symbol.asyncDispose]()
  }
})
