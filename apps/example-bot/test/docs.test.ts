import { execFile } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chatText, scriptedUpstream } from '@sandbox/testing'
import { expect, test, vi } from 'vitest'
import { freshStateDir } from './run-demo.ts'

vi.setConfig({ testTimeout: 90_000 })

const LAUNCHER = fileURLToPath(new URL('../deploy/bot', import.meta.url))

/** The blocks of a page, by language, in order. */
function blocks(page: string, language: string): readonly string[] {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8')
  return [...text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n([\\s\\S]*?)^ *\`\`\``, 'gm'))].map(
    ([, indent = '', block = '']) => block.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )
}

/** A machine of the guide in a directory: its `/etc`, its `/var/lib`, and a `bot` in its PATH. */
function machine() {
  const root = freshStateDir()
  for (const name of ['', 'bin', 'etc', 'var', 'var/lib']) mkdirSync(join(root, name), { mode: 0o711 })
  for (const name of ['etc/sandbox-bot', 'var/lib/sandbox-bot']) mkdirSync(join(root, name), { mode: 0o700 })
  if (process.getuid?.() === 0) chmodSync(join(root, 'var/lib/sandbox-bot'), 0o711)
  symlinkSync(LAUNCHER, join(root, 'bin', 'bot'))
  const here = (text: string) =>
    text
      .replaceAll('/etc/sandbox-bot', join(root, 'etc/sandbox-bot'))
      .replaceAll('/var/lib/sandbox-bot', join(root, 'var/lib/sandbox-bot'))
      .replaceAll(`.${join(root, 'etc')}`, './etc')
      .replaceAll(`.${join(root, 'var')}`, './var')
      .replaceAll(' -C / ', ` -C ${root} `)
  return {
    root,
    etc: join(root, 'etc/sandbox-bot'),
    state: join(root, 'var/lib/sandbox-bot'),
    here,
    put: (name: string, text: string, mode = 0o600) => {
      writeFileSync(join(root, 'etc/sandbox-bot', name), text, { mode })
    },
    run: (block: string, input = '', env: Record<string, string> = {}) =>
      new Promise<string>((done, fail) => {
        const all = { PATH: `${join(root, 'bin')}:${process.env.PATH}`, HOME: root, ...env }
        const child = execFile(
          '/bin/sh',
          ['-eu', '-c', here(block)],
          { cwd: root, env: all },
          (error, stdout, stderr) =>
            error === null ? done(stdout) : fail(new TypeError(`${error.message}\n${stdout}${stderr}`)),
        )
        child.stdin?.end(input)
      }),
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

test('operators.md: from init to a doctor that finds everything well, then backup and restore', async () => {
  await using service = await scriptedUpstream(() => chatText('x'))
  using place = machine()
  const [init = '', key = '', doctor = '', sums = '', backup = '', restore = ''] = blocks(
    'operators.md',
    'sh',
  )
  await place.run(init.replace('https://api.openai.com/v1', `${service.url}/v1`))
  await place.run(key, 'sk-guide-0123456789\n')
  expect(statSync(join(place.etc, 'openai.key')).mode & 0o777).toBe(0o600)
  // The guide is for containers; the walls have tests of their own.
  const config = join(place.etc, 'bot.jsonc')
  const text = readFileSync(config, 'utf8').replace(
    '"surfaces"',
    '"workers": { "driver": "process" },\n  "surfaces"',
  )
  writeFileSync(config, text.replace('8080', '0').replace('9464', '0'), { mode: 0o600 })
  const told = await place.run(doctor)
  expect(told).not.toMatch(/^(FAIL|skip)/m)
  expect(told).toMatch(/^ok +provider openai .*takes the key of room:lobby and knows gpt-5-mini$/m)
  expect(service.seen[0]?.headers.authorization).toBe('Bearer sk-guide-0123456789')

  const example = blocks('operators.md', 'json')[0] ?? ''
  mkdirSync(join(place.state, 'audit'), { recursive: true })
  writeFileSync(join(place.state, 'audit', 'audit.jsonl'), example, { mode: 0o600 })
  expect(await place.run(sums)).toMatch(/u-olga.*450/)

  await place.run(backup)
  renameSync(place.etc, `${place.etc}.lost`)
  renameSync(place.state, `${place.state}.lost`)
  await place.run(restore)
  expect(readFileSync(join(place.state, 'audit', 'audit.jsonl'), 'utf8')).toBe(example)
  expect(await place.run(doctor)).not.toMatch(/^(FAIL|skip)/m)
  expect(statSync(join(place.root, 'var/lib/sandbox-bot.backup.tgz')).mode & 0o777).toBe(0o600)
})

test('operators.md: the configuration of the page is one', async () => {
  using place = machine()
  place.put('bot.jsonc', place.here(blocks('operators.md', 'jsonc')[0] ?? ''))
  place.put('keys.json', '{ "rules": [{ "channel": "room:*", "key": "env:K", "provider": "claude" }] }')
  const told = await place.run(
    'bot keys explain --config /etc/sandbox-bot/bot.jsonc --channel room:lab',
    '',
    { K: 'sk-k-0123456789' },
  )
  expect(told).toContain('It is for provider claude.')
})

test('keys.md: the file, what check and explain say, and a bad edit with its line', async () => {
  using place = machine()
  place.put('bot.jsonc', place.here(blocks('operators.md', 'jsonc')[0] ?? ''))
  place.put('keys.json', blocks('keys.md', 'jsonc')[0] ?? '')
  for (const name of ['team', 'lab']) place.put(`${name}.key`, `sk-${name}-0123456789\n`)
  place.put('vault', '#!/bin/sh\n[ "$1 $2" = "read bot/openai" ] && echo sk-vault-0123456789\n', 0o700)
  const env = { ANN_KEY: 'sk-ann-0123456789' }
  const [check = '', explain = ''] = blocks('keys.md', 'sh')
  const [checked = '', explained = '', problem = ''] = blocks('keys.md', 'text')
  expect(await place.run(check, '', env)).toBe(place.here(checked))
  expect(await place.run(explain, '', env)).toBe(explained)
  place.put('keys.json', blocks('keys.md', 'json')[0] ?? '')
  await expect(place.run(check, '', env)).rejects.toThrow(place.here(problem.trim()))
})

test('security.md: who paid, what a hostile program was told, and a channel that nobody pays for', async () => {
  using place = machine()
  place.put('bot.jsonc', place.here(blocks('operators.md', 'jsonc')[0] ?? ''))
  place.put('keys.json', blocks('keys.md', 'jsonc')[0] ?? '')
  for (const name of ['team', 'lab']) place.put(`${name}.key`, `sk-${name}-0123456789\n`)
  const [check = '', paid = '', told = '', explain = ''] = blocks('security.md', 'sh')
  const [payers = '', answers = '', explained = ''] = blocks('security.md', 'text')
  await place.run(check)
  const withoutPrints = (text: string) => text.replaceAll(/\b[0-9a-f]{12}\b/g, 'PRINT')
  const rows = await place.run(paid)
  expect(withoutPrints(rows)).toBe(withoutPrints(payers))
  expect(new Set(rows.match(/\b[0-9a-f]{12}\b/g)).size).toBe(4)
  expect(await place.run(told)).toBe(answers)
  expect(await place.run(explain)).toBe(explained)
})

test('every command of the pages is one that the bot knows', () => {
  const all = ['operators.md', 'keys.md', 'security.md'].flatMap((page) => [
    ...blocks(page, 'sh'),
    ...blocks(page, 'console'),
  ])
  const commands = all.flatMap((block) =>
    [...block.matchAll(/(?:^|sandbox-bot )bot ([a-z]+)/gm)].map(([, word]) => word),
  )
  expect(new Set(commands)).toEqual(new Set(['init', 'doctor', 'keys']))
})
