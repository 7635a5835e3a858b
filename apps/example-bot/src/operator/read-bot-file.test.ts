import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { BotError } from '../errors.ts'
import { readBotFile } from './read-bot-file.ts'

const room = { mode: 'sealed', speakers: [{ id: 'u', name: 'U' }] }
const openai = { api: 'openai', url: 'https://api.openai.com/v1', model: 'm' }
const good = {
  stateDir: './state',
  keys: 'keys.json',
  channels: { 'room:a': room },
  surfaces: { web: { port: 0 } },
}

function read(text: string) {
  using dir = tempDir()
  const path = join(dir.path, 'bot.jsonc')
  writeFileSync(path, text)
  try {
    return { config: readBotFile(path), dir: dir.path, problem: '' }
  } catch (error) {
    if (BotError.isInstance(error) && error.code === 'config') {
      return { config: undefined, dir: dir.path, problem: error.message.replaceAll(`${path}:`, '') }
    }
    throw error
  }
}

const problemOf = (more: object) => read(JSON.stringify({ ...good, ...more })).problem

describe('the configuration of an operator', () => {
  test('one that others may write is refused: they would choose where the keys are sent', () => {
    using dir = tempDir()
    const path = join(dir.path, 'bot.jsonc')
    writeFileSync(path, JSON.stringify(good))
    for (const mode of [0o666, 0o620, 0o602]) {
      chmodSync(path, mode)
      expect(() => readBotFile(path)).toThrow(`chmod go-w ${path}`)
    }
    chmodSync(path, 0o644)
    expect(readBotFile(path).path).toBe(path)
  })

  test('comments are allowed, and paths are relative to the file', () => {
    const text = `// my bot\n${JSON.stringify({ ...good, audit: { path: 'audit.jsonl' }, workers: { piContent: 'pi' } })} // the end`
    const { config, dir } = read(text)
    expect(config).toMatchObject({
      stateDir: join(dir, 'state'),
      keys: join(dir, 'keys.json'),
      audit: { path: join(dir, 'audit.jsonl') },
      workers: { piContent: join(dir, 'pi') },
      channels: { 'room:a': room },
    })
  })

  test('a missing file says how to make one', () => {
    expect(() => readBotFile('/nowhere/bot.jsonc')).toThrow(
      /cannot be read \(ENOENT\)\. Make one with: bot init/,
    )
  })

  test('what is no JSON is told with its line', () => {
    expect(read('{\n  "stateDir": "x"\n  "keys": "y"\n}').problem).toContain(
      '3: this is not JSON, comments aside: a comma',
    )
  })

  test('a service that is named twice is refused: the second one would get the keys of the first', () => {
    const [first, second] = [
      JSON.stringify(openai),
      JSON.stringify({ ...openai, url: 'https://other.example' }),
    ]
    const text = JSON.stringify({ ...good, providers: {} })
    expect(read(text.replace('"providers":{', `"providers":{\n"a":${first},\n"a":${second}`)).problem).toBe(
      '3: this is not JSON, comments aside: a name is given twice.',
    )
  })

  test('every problem is told, each with its line and its field', () => {
    const { problem } = read(`{
  "stateDir": 7,
  "channels": {
    "room:a": {
      "mode": "open",
      "speakers": [{ "id": "u" }]
    }
  },
  "surfaces": { "web": { "port": 99999 },
    "wob": 1 }
}`)
    expect(problem.split('\n')).toEqual([
      '1: keys: is missing.',
      '2: stateDir: must be string.',
      '5: channels.room:a.mode: must be one of "sealed","pi".',
      '6: channels.room:a.speakers.0.name: is missing.',
      '9: surfaces.web.port: must be <= 65535.',
      '10: surfaces.wob: there is no such setting.',
    ])
  })

  test.each<[string, object, string]>([
    ['no channel', { channels: {} }, 'channels: names no channel'],
    ['a page without a room', { channels: { 'discord:1': { mode: 'sealed' } } }, 'needs a channel room:…'],
    [
      'a room without speakers',
      { channels: { 'room:a': { mode: 'sealed' } } },
      'channels.room:a.speakers: is missing',
    ],
    [
      'a speaker who is there twice',
      { channels: { 'room:a': { ...room, speakers: [...room.speakers, { id: 'u', name: 'Another' }] } } },
      'channels.room:a.speakers: names an id twice',
    ],
    [
      'a speaker whose id no turn can carry',
      { channels: { 'room:a': { ...room, speakers: [{ id: 'u\nx', name: 'U' }] } } },
      'channels.room:a: holds a control character',
    ],
    ['a channel that no turn can carry', { channels: { 'room:a\u0007': room } }, 'holds a control character'],
    ['a pattern of rooms', { channels: { 'room:*': room } }, 'must be a whole key'],
    [
      'another surface',
      { channels: { 'room:a': room, 'irc:x': { mode: 'sealed' } } },
      'must begin with room: or discord:',
    ],
    [
      'a pattern in the middle',
      { channels: { 'room:a': room, 'discord:*x': { mode: 'sealed' } } },
      'must begin with',
    ],
    [
      'Discord that is not set',
      { channels: { 'room:a': room, 'discord:*': { mode: 'sealed' } } },
      'surfaces.discord is not set',
    ],
    [
      'a pattern that is on',
      {
        surfaces: { discord: { token: 'env:T', ownerId: '1' } },
        channels: { 'discord:*': { mode: 'sealed', on: true } },
      },
      'channels.discord:*.on: is not for patterns',
    ],
    ['no provider', { providers: {} }, 'providers: names no service'],
    [
      'a provider without TLS',
      { providers: { a: { ...openai, url: 'http://api.example/v1' } } },
      'must begin with https://',
    ],
    [
      'a loopback one',
      { providers: { a: { ...openai, url: 'http://127.0.0.1:1/v1' } } },
      'needs "allowHttp": true',
    ],
    [
      'TLS that is given up elsewhere',
      { providers: { a: { ...openai, allowHttp: true, url: 'http://10.0.0.1/v1' } } },
      'must begin with https://',
    ],
    [
      'a key in the URL',
      { providers: { a: { ...openai, url: 'https://sk-x@api.example/v1' } } },
      'keys belong into the key file',
    ],
    [
      'an unknown provider',
      { providers: { openai }, channels: { 'room:a': { ...room, provider: 'claude' } } },
      'channels.room:a.provider: is not among: openai',
    ],
    [
      'a provider of nobody',
      { channels: { 'room:a': { ...room, provider: 'x' } } },
      'there are no providers',
    ],
    [
      'a token in the file',
      { surfaces: { discord: { token: 'abc', ownerId: '1' } } },
      'surfaces.discord.token: has not the form',
    ],
  ])('%s is refused', (_, more, problem) => {
    expect(problemOf(more)).toContain(problem)
  })

  test('a loopback service may do without TLS when that is said', () => {
    expect(
      problemOf({ providers: { a: { ...openai, url: 'http://127.0.0.1:1/v1', allowHttp: true } } }),
    ).toBe('')
  })
})
