import { expect, test } from 'vitest'
import { sampleScopes } from './sample-scopes.ts'

test.each([
  ['room:a', ['room:a']],
  ['room:*', ['room:a', 'room:ab']],
  ['room:ab*', ['room:ab']],
  ['room:x', []],
  ['discord:*', ['discord:any', 'discord:9any']],
  ['discord:91*', ['discord:91any', 'discord:91any']],
  ['discord:91', ['discord:91', 'discord:91']],
  ['irc:*', []],
])('a rule for %s is tried as %j', (channel, expected) => {
  const settings = { mode: 'sealed' as const }
  const channels = { 'room:a': settings, 'room:ab': settings, 'discord:*': settings, 'discord:9*': settings }
  const scopes = sampleScopes([{ channel, key: 'env:K' }], { channels })
  expect(scopes.map((scope) => scope.channel)).toEqual(expected)
  expect(scopes.every(({ speaker }) => speaker.id === 'anybody')).toBe(true)
})
