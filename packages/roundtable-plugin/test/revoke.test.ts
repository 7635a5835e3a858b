import { PiSandboxBroker } from '@sandbox/pi-broker'
import { chatText } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { messagesService } from './messages-service.ts'
import { piKit } from './pi-kit.ts'
import { ann, bob, kit } from './runtime-kit.ts'

const STOPPED = /^Spending was stopped for you in this channel/

/** A key for each speaker, and who was asked for. */
function keys() {
  const asked: string[] = []
  const getter = ({ speaker }: { speaker: { id: string } }) => {
    asked.push(speaker.id)
    return `sk-${speaker.id}-0123456789abcdef`
  }
  return { asked, getter }
}

/** A model that does not answer until its caller is gone. */
function hanging() {
  const called = Promise.withResolvers<void>()
  const gone = Promise.withResolvers<void>()
  return { called, gone }
}

test('[scope:revoked-at-once] revoke ends the running turn of the speaker and its call to the model; the chat is told, and later turns start nothing', async () => {
  const { called, gone } = hanging()
  const { asked, getter } = keys()
  await using own = await kit({
    runtime: { apiKey: getter },
    script: ({ headers }, response) => {
      if (headers.authorization?.includes('u-bob')) return chatText('for bob')
      response.on('close', gone.resolve)
      called.resolve()
      return new Promise(() => {})
    },
  })
  const turn = own.runtime.runTurn('fake:1', ann, 'hello')
  await called.promise
  expect(own.runtime.revoke({ channel: 'fake:1', speaker: ann })).toEqual(['fake:1'])
  expect(await turn).toEqual({ ok: false, category: 'credential', text: expect.stringMatching(STOPPED) })
  await gone.promise
  expect(own.calls.filter(({ route }) => route === 'model').map(({ reason }) => reason)).toEqual(['revoked'])
  expect(own.runDirs()).toEqual([])
  asked.length = 0
  expect(await own.runtime.runTurn('fake:1', ann, 'again')).toMatchObject({ category: 'credential' })
  expect(await own.runtime.runTurn('fake:1', bob, 'hello')).toEqual({ ok: true, text: 'for bob' })
  expect(asked).toEqual(['u-bob'])
  const states = own.turns.filter(({ speaker }) => speaker.id === 'u-ann').map(({ state }) => state)
  expect(states.slice(-4)).toEqual(['admitted', 'starting', 'settling', 'settled'])
})

test('[scope:revoked-at-once] what was revoked is asked for again once it is restored', async () => {
  const { asked, getter } = keys()
  await using own = await kit({ runtime: { apiKey: getter } })
  own.runtime.revoke({ channel: 'fake:1' })
  expect(own.runtime.revoked()).toEqual([{ channel: 'fake:1' }])
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ ok: false })
  expect(asked).toEqual([])
  expect(own.runtime.restore({ channel: 'fake:1' })).toBe(true)
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
  expect(asked).toEqual(['u-ann'])
})

test('[scope:revoked-at-once] in Pi mode too: the call ends, its worker goes, and another speaker has a new one', async () => {
  const called = Promise.withResolvers<void>()
  await using model = await messagesService(() => {
    called.resolve()
    return 'hang'
  })
  const { asked, getter } = keys()
  const calls: string[] = []
  await using own = piKit({
    script: async ({ nonce, speaker }, guest) => {
      if (speaker.id === 'u-bob') return { ok: true, text: 'for bob', files: [] }
      const { status } = await guest.spend(nonce, '/v1/messages', {
        model: 'm',
        max_tokens: 2_000,
        messages: [{ role: 'user', content: 'hello' }],
      })
      return { ok: false, code: 'model_failed', error: `${status}` }
    },
    ports: {
      openBroker: () =>
        new PiSandboxBroker({
          model: 'm',
          oauthToken: getter,
          upstream: model.url,
          allowHttp: true,
          onCall: ({ route, reason }) => calls.push(`${route} ${reason}`),
        }),
    },
  })
  const turn = own.say('hello')
  await called.promise
  expect(own.runtime.revoke({ speaker: { id: 'u-ann' } })).toEqual(['fake:1'])
  expect(await turn).toMatchObject({
    ok: false,
    category: 'credential',
    text: expect.stringMatching(STOPPED),
  })
  expect(calls).toContain('model revoked')
  expect(own.driver.alive()).toEqual([])
  asked.length = 0
  expect(await own.say('again')).toMatchObject({ ok: false, category: 'credential' })
  expect(await own.say('hello', { speaker: bob })).toMatchObject({ ok: true, text: 'for bob' })
  expect([asked, own.driver.guests.length]).toEqual([[], 2])
  expect(own.runtime.restore({ speaker: { id: 'u-ann' } })).toBe(true)
  expect(own.runtime.revoked()).toEqual([])
})
