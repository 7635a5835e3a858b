import { expect, test } from 'vitest'
import { byChannel, explain, forOrigin, resolveCredential } from './index.ts'

const key = 'sk-a-0123456789'
const scope = (channel = 'a:1') => ({ channel, speaker: { id: 'u-ann', name: 'Ann' } })
const spend = (getter: Parameters<typeof resolveCredential>[0]['getter'], origin: string, channel?: string) =>
  resolveCredential({ getter, scope: scope(channel), origin })

test('decision 16: a bare credential goes to its origin and nowhere else', async () => {
  const getter = forOrigin('https://a.example/v1', () => key)
  expect((await spend(getter, 'https://a.example')).origin).toBe('https://a.example')
  await expect(spend(getter, 'https://b.example')).rejects.toMatchObject({ code: 'credential_origin' })
})

test('decision 16: a credential that says its origin keeps it', async () => {
  const getter = forOrigin('https://a.example', () => ({ token: key, origin: 'https://b.example' }))
  expect((await spend(getter, 'https://b.example')).origin).toBe('https://b.example')
  await expect(spend(getter, 'https://a.example')).rejects.toMatchObject({ code: 'credential_origin' })
})

test('the origin may depend on the scope', async () => {
  const getter = forOrigin(
    ({ channel }) => (channel === 'a:1' ? 'https://a.example' : undefined),
    () => key,
  )
  await expect(spend(getter, 'https://b.example')).rejects.toMatchObject({ code: 'credential_origin' })
  expect((await spend(getter, 'https://b.example', 'b:1')).origin).toBe('https://b.example')
})

test.each([undefined, null, ''])('CS-09 %j stays no credential', async (answer) => {
  await expect(
    spend(
      forOrigin('https://a.example', () => answer),
      'https://a.example',
    ),
  ).rejects.toMatchObject({
    code: 'credential_missing',
  })
})

test('what the getter notes about its choice is kept', async () => {
  const getter = forOrigin('https://a.example', byChannel({ 'a:1': key }))
  expect(await explain(getter, scope())).toMatchObject({
    rule: 'channel a:1',
    source: 'literal',
    outcome: 'ok',
  })
})

test('what cannot work is refused at once', () => {
  expect(() => forOrigin('a.example', () => key)).toThrow(TypeError)
  expect(() => forOrigin('https://a.example', undefined as never)).toThrow(TypeError)
})
