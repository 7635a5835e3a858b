import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { BotError } from '../errors.ts'
import { initFiles, readAnswers } from './init-files.ts'
import { openKeys } from './open-keys.ts'
import { readBotFile } from './read-bot-file.ts'

test.each([
  { provider: 'stand-in' },
  { provider: 'openai', mode: 'pi' },
  { provider: 'openai', url: 'http://127.0.0.1:11434/v1', model: 'a "b"', key: 'env:K', port: 0 },
  { provider: 'anthropic', mode: 'pi', owner: '42', key: 'command:vault read "x"' },
  { provider: 'anthropic', mode: 'sealed', owner: '42' },
])('what is written for %j is read again without a problem', (given) => {
  using dir = tempDir()
  const files = initFiles(readAnswers(given))
  const path = join(dir.path, 'bot.jsonc')
  writeFileSync(path, files.bot, { mode: 0o600 })
  writeFileSync(join(dir.path, 'keys.json'), files.keys, { mode: 0o600 })
  const config = readBotFile(path)
  const rules = openKeys(config).rules()
  expect(rules.map(({ channel }) => channel)).toEqual(
    given.owner === undefined ? ['room:*'] : ['room:*', 'discord:*'],
  )
  expect(config.channels['room:lobby']?.mode).toBe(given.mode ?? 'sealed')
  expect(config.surfaces.discord?.ownerId).toBe(given.owner)
  const model = Object.values(config.providers ?? {})[0]?.model
  expect(model).toBe(given.model ?? { openai: 'gpt-5-mini', anthropic: 'claude-sonnet-4-5' }[given.provider])
})

test.each([
  [{ provider: 'other' }, '--provider is "openai", "anthropic" or "stand-in"'],
  [{ mode: 'open' }, '--mode is "sealed" or "pi"'],
  [{ key: 'sk-oops' }, 'never the key itself'],
  [{ owner: 'me' }, '--owner is a Discord user id'],
])('%j is refused', (given, sentence) => {
  expect(() => readAnswers(given)).toThrow(BotError)
  expect(() => readAnswers(given)).toThrow(sentence)
})
