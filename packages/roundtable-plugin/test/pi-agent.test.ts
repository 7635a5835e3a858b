import { expect, test } from 'vitest'
import { agentKit, conversation, PEOPLE, sessionFiles } from './pi-agent-kit.ts'
import { until } from './pi-kit.ts'

test('PR-21 [scope:own-key-only] the real agent answers two speakers in one channel, each on their own token, and remembers', async () => {
  await using kit = await agentKit('process')
  const tokens = { ann: kit.renew('u-ann'), bob: kit.renew('u-bob') }
  const pieces: string[] = []
  const first = await kit.say('first', { onProgress: ({ text }) => pieces.push(text) })
  expect(first).toMatchObject({ ok: true, text: /answer to .*first.*u-ann in fake:team/ })
  const second = await kit.say('second', { speaker: PEOPLE.bob })
  expect(second).toMatchObject({ ok: true, text: /answer to .*second.*u-bob in fake:team/ })
  expect(kit.service.calls.map(({ authorization }) => authorization)).toEqual([
    `Bearer ${tokens.ann}`,
    `Bearer ${tokens.ann}`,
    `Bearer ${tokens.bob}`,
    `Bearer ${tokens.bob}`,
  ])
  expect(JSON.stringify(kit.service.calls.at(-1)?.body.messages)).toContain('answer to')
  expect(sessionFiles(kit.partyDir)).toHaveLength(1)
  expect(conversation(kit.partyDir).length).toBeGreaterThan(6)
}, 60_000)

test('[scope:no-fallback] a speaker without a token gets words to act on, and nothing is sent', async () => {
  await using kit = await agentKit('process', { keyContact: 'Olga' })
  kit.renew('u-ann')
  const reply = await kit.say('hello', { speaker: PEOPLE.bob })
  expect(reply).toMatchObject({ ok: false, category: 'credential', text: /No key is set for you.*ask Olga/ })
  expect(kit.service.calls).toEqual([])
  expect(await kit.say('hello')).toMatchObject({ ok: true })
}, 60_000)

test('a turn that is stopped in mid-answer ends at once, and the next one continues the conversation', async () => {
  await using kit = await agentKit('process')
  kit.renew('u-ann')
  await kit.say('first')
  kit.service.answer = () => 'hang'
  const turn = kit.say('never answered')
  await until(() => kit.service.calls.length === 3)
  expect(await kit.runtime.stop('fake:team')).toBe(true)
  expect(await turn).toMatchObject({ ok: false, category: 'stopped', text: 'Stopped.' })
  kit.service.answer = ({ asked }) => ({ text: `well: ${asked}` })
  expect(await kit.say('second')).toMatchObject({ ok: true, text: /well: .*second/ })
  expect(JSON.stringify(kit.service.calls.at(-1)?.body.messages)).toContain('answer to')
  expect(sessionFiles(kit.partyDir)).toHaveLength(1)
  await kit.runtime.startFresh('fake:team')
  expect(await kit.say('third')).toMatchObject({ ok: true })
  expect(JSON.stringify(kit.service.calls.at(-1)?.body.messages)).not.toContain('second')
}, 60_000)
