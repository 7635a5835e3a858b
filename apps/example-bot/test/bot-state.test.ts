import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyFile } from '@sandbox/credential-scope/sources'
import { chatText, chatToolCalls, type ScriptedUpstream, scriptedUpstream } from '@sandbox/testing'
import { expect, test, vi } from 'vitest'
import { ask, operatorDir, runBot, stopBot } from './operator-kit.ts'
import { processesWith, turnDirectories, visit } from './run-demo.ts'
import { startRoomBot } from './start-room-bot.ts'

// Every test starts processes of its own.
vi.setConfig({ testTimeout: 90_000 })

const speakers = [{ id: 'u-ann', name: 'Ann' }]
const lobby = { channels: { 'room:lobby': { mode: 'sealed', speakers } } }
const rules = [{ channel: 'room:*', key: 'env:ANY' }]
const env = { ANY: 'sk-any-0123456789' }

test('a second bot on the same state directory is refused with words, and the first goes on', async () => {
  using place = operatorDir(lobby, rules)
  await using first = runBot(place.config, env)
  await first.address
  await using second = runBot(place.config, env)
  expect(await second.exited).toBe(1)
  expect(second.output()).toContain(`is used by another host (process ${first.child.pid}). Stop that host`)
  expect(second.output()).not.toMatch(/\n\s+at /)
  expect((await ask(first, 'room:lobby', 'u-ann', 'hello')).reply).toContain('Hello Ann!')
})

test('a bot that is killed in mid-turn and started again knows what it knew, and leaves nothing', async () => {
  using place = operatorDir(lobby, rules)
  const state = join(place.dir, 's')
  {
    await using bot = runBot(place.config, env)
    await ask(bot, 'room:lobby', 'u-ann', 'remember that I like tea')
    const page = visit(await bot.address)
    await page.events(
      (events) => events.some(({ type, data }) => type === 'turn' && data.receipt.state === 'answering'),
      () => page.say('room:lobby', 'u-ann', 'take your time'),
    )
    expect(turnDirectories(state)).not.toEqual([])
    bot.child.kill('SIGKILL')
    await bot.exited
  }
  await using bot = runBot(place.config, env)
  expect((await ask(bot, 'room:lobby', 'u-ann', 'what do you remember?')).reply).toContain('I like tea')
  expect(historyOf(state)).toContain('remember that I like tea')
  expect(historyOf(state)).not.toContain('take your time')
  await stopBot(bot)
  expect(processesWith(state, undefined)).toEqual([])
  expect(turnDirectories(state)).toEqual([])
})

test('state survives an upgrade: another guest program goes on with the facts and the history of the one before', async () => {
  await using service = await scriptedUpstream(memoryScript)
  using place = operatorDir(lobby, rules)
  const sealed = new URL('../../../packages/docker-worker/dist/guest/sealed.js', import.meta.url)
  // The same program, with a first line that shows that it was this one.
  const upgraded = join(place.dir, 'upgraded.js')
  const mark = `import { writeFileSync as mark } from 'node:fs'
mark(process.argv[process.argv.indexOf('--workspace') + 1] + '/upgraded', '')\n`
  writeFileSync(upgraded, mark + readFileSync(sealed, 'utf8'))

  const keys = keyFile({ path: place.keys, env })
  const options = { stateDir: join(place.dir, 's'), modelUrl: `${service.url}/v1`, keys }
  {
    await using before = await startRoomBot(options)
    expect(await before.ask('remember that I like tea')).toBe('ok')
    expect(workspaceFiles(options.stateDir)).not.toContain('upgraded')
  }
  await using after = await startRoomBot({ ...options, guestBundle: upgraded })
  expect(await after.ask('what do you remember?')).toContain('I like tea')
  expect(workspaceFiles(options.stateDir)).toContain('upgraded')
  const { messages } = JSON.parse(lastOf(service).body) as { messages: { role: string; content: string }[] }
  expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
    expect.stringContaining('remember that I like tea'),
    expect.stringContaining('what do you remember?'),
  ])
})

/** Keeps what it is told to, tells what was kept, and says `ok` to the rest. */
const memoryScript: ScriptedUpstream['script'] = ({ body }) => {
  const last = JSON.parse(body).messages.at(-1) as { role: string; content: string }
  if (last.role === 'tool') return chatText(last.content.includes('tea') ? last.content : 'ok')
  if (last.content.includes('remember that')) {
    const input = { scope: 'speaker', key: 'drink', text: 'I like tea' }
    return chatToolCalls([{ name: 'memory_set', input }])
  }
  return chatToolCalls([{ name: 'memory_get', input: { scope: 'speaker' } }])
}

function lastOf({ seen }: ScriptedUpstream) {
  const last = seen.at(-1)
  if (last === undefined) throw new TypeError('the service saw nothing')
  return last
}

function workspaceFiles(state: string): string[] {
  return readdirSync(join(state, 'workspaces'), { recursive: true, encoding: 'utf8' }).map(
    (path) => path.split('/').at(-1) ?? '',
  )
}

function historyOf(state: string): string {
  const root = join(state, 'workspaces')
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return paths
    .filter((path) => path.endsWith('/history.json'))
    .map((path) => readFileSync(join(root, path), 'utf8'))
    .join('\n')
}
