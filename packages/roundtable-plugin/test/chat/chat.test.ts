import { expect, test } from 'vitest'
import { runChat } from './run-chat.ts'

/**
 * The short form. The long one by hand: `SANDBOX_CHAT_MESSAGES=1000 vitest run chat.test`, on Node and on Bun; and a chat
 * that failed once more: `SANDBOX_CHAT_SEED=<seed>`.
 */
const messages = Number(process.env.SANDBOX_CHAT_MESSAGES ?? 80)
const seed = Number(process.env.SANDBOX_CHAT_SEED ?? Math.floor(Math.random() * 2 ** 32))
const long = messages >= 1_000
const size = {
  messages,
  channels: long ? 20 : 6,
  speakers: long ? 50 : 12,
  atOnce: 12,
  restarts: Math.max(2, Math.floor(messages / 150)),
}

test(`[scope:own-key-only] KH-05 PL-07 a chat of ${messages} messages in both modes, by seed ${seed}: every reply in its channel and in order, every call with the key of its scope, nothing lost, doubled or left behind`, async () => {
  const report = await runChat(seed, size)
  process.stdout.write(`chat: ${JSON.stringify({ ...report, problems: report.problems.length })}\n`)
  expect(report.problems).toEqual([])
  expect(report.answered).toBeGreaterThan(messages / 4)
}, 1_800_000)

test(`[scope:own-key-only] a chat of twelve messages with the real Pi agent, by seed ${seed}`, async () => {
  const few = { messages: 12, channels: 2, speakers: 4, atOnce: 4, restarts: 1, calm: true }
  const report = await runChat(seed, few, { pi: 'agent' })
  process.stdout.write(`chat: ${JSON.stringify({ ...report, problems: report.problems.length })}\n`)
  expect(report.problems).toEqual([])
}, 120_000)
