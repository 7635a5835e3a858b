import { type CredentialReceipt, firstOf } from '@sandbox/credential-scope'
import { chatText, scriptedUpstream } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { ann, bob, kit } from './runtime-kit.ts'

test('decision 16: speakers may use different services and models, each with a key for that service', async () => {
  await using other = await scriptedUpstream(() => chatText('from the other'))
  const receipts: CredentialReceipt[] = []
  const keys = ({ speaker }: { speaker: { id: string } }) =>
    speaker.id === ann.id ? { token: 'sk-ann-0123456789', origin: other.url } : 'sk-bob-0123456789'
  await using own = await kit({
    runtime: {
      apiKey: firstOf(keys),
      upstream: ({ speaker }) =>
        speaker.id === ann.id
          ? {
              modelUrl: `${other.url}/chat`,
              model: 'large',
              authSlot: { kind: 'header', name: 'x-api-key' },
              tokenLimitField: 'max_completion_tokens',
            }
          : undefined,
      onReceipt: (receipt) => receipts.push(receipt),
    },
  })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'from the other' })
  expect(await own.runtime.runTurn('fake:1', bob, 'hello')).toEqual({ ok: true, text: 'hi' })
  const [asked] = other.seen
  expect([asked?.url, asked?.headers['x-api-key'], asked?.headers.authorization]).toEqual([
    '/chat',
    'sk-ann-0123456789',
    undefined,
  ])
  expect(JSON.parse(asked?.body.toString() ?? '')).toMatchObject({
    model: 'large',
    max_completion_tokens: 4096,
  })
  expect(own.upstream.seen.map(({ headers }) => headers.authorization)).toEqual(['Bearer sk-bob-0123456789'])
  expect(receipts.map(({ outcome }) => outcome)).toEqual(['ok', 'ok'])
})

test('decision 16: a key that is for the usual service never goes to another', async () => {
  await using other = await scriptedUpstream(() => chatText('from the other'))
  await using own = await kit({ runtime: { upstream: () => ({ modelUrl: `${other.url}/chat` }) } })
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({
    ok: false,
    category: 'credential',
  })
  expect([other.seen.length, own.upstream.seen.length]).toEqual([0, 0])
})
