import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { chatText, scriptedUpstream } from '@sandbox/testing'
import { describe, expect, test, vi } from 'vitest'
import { ask, messagesService, operatorDir, runBot as run, stopBot as stop } from './operator-kit.ts'
import { freshStateDir, type RunningDemo, replies, runDemo, turnDirectories, visit } from './run-demo.ts'

// Every test starts processes of its own.
vi.setConfig({ testTimeout: 90_000 })

const speakers = [
  { id: 'u-ann', name: 'Ann' },
  { id: 'u-ben', name: 'Ben' },
]
const sealed = { mode: 'sealed', speakers }

async function monitorOf(bot: RunningDemo): Promise<string> {
  await bot.address
  const [, address = ''] = /monitor (http:[^\s"]+)/.exec(bot.output()) ?? []
  return address
}

const auditOf = (path: string) =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

describe('real endpoints, by configuration alone', () => {
  test('Chat Completions and Messages, sealed and Pi: each speaker at their own service, with their own key and model', async () => {
    await using openai = await scriptedUpstream(() => chatText('from openai'))
    await using claude = await messagesService(() => 'from claude')
    await using compatible = await scriptedUpstream(() => chatText('from claude, sealed'))
    const loopback = { allowHttp: true }
    using place = operatorDir(
      {
        providers: {
          openai: {
            api: 'openai',
            url: `${openai.url}/v1`,
            model: 'gpt-x',
            tokenLimitField: 'max_completion_tokens',
            ...loopback,
          },
          claude: { api: 'anthropic', url: claude.url, model: 'claude-x', ...loopback },
          compatible: { api: 'anthropic', url: compatible.url, model: 'claude-y', ...loopback },
        },
        channels: { 'room:team': sealed, 'room:agent': { ...sealed, mode: 'pi' } },
        audit: { path: './audit/audit.jsonl' },
        log: 'json',
      },
      [
        { channel: 'room:*', key: 'env:TEAM_KEY', provider: 'openai' },
        {
          channel: 'room:team',
          speaker: 'u-ben',
          key: 'file:./ben.key',
          provider: 'compatible',
          model: 'opus',
        },
        { channel: 'room:agent', key: 'env:CLAUDE_KEY', provider: 'claude' },
      ],
    )
    place.put('ben.key', 'sk-ben-0123456789\n')
    const env = { TEAM_KEY: 'sk-team-0123456789', CLAUDE_KEY: 'sk-claude-0123456789' }
    await using bot = run(place.config, env)

    expect((await ask(bot, 'room:team', 'u-ann', 'hello')).reply).toBe('from openai')
    expect((await ask(bot, 'room:team', 'u-ben', 'hello')).reply).toBe('from claude, sealed')
    const pi = await ask(bot, 'room:agent', 'u-ann', 'hello')
    expect(pi.reply).toBe('from claude')
    expect(pi.receipt).toMatchObject({ ok: true, tokens: { input: 11, output: 3 } })

    const sent = [openai, compatible, claude].map(({ seen }) => {
      const [request] = seen
      const key = request?.headers.authorization ?? request?.headers['x-api-key']
      return [request?.url.split('?')[0], key, JSON.parse(request?.body ?? '{}').model]
    })
    expect(sent).toEqual([
      ['/v1/chat/completions', 'Bearer sk-team-0123456789', 'gpt-x'],
      ['/v1/chat/completions', 'Bearer sk-ben-0123456789', 'opus'],
      ['/v1/messages', 'sk-claude-0123456789', 'claude-x'],
    ])
    expect(JSON.parse(openai.seen[0]?.body ?? '')).toHaveProperty('max_completion_tokens')

    const monitor = await monitorOf(bot)
    expect(await (await fetch(`${monitor}/healthz`)).json()).toEqual({
      status: 'ok',
      checks: { engine: 'ok', keys: 'ok' },
    })
    const metrics = await (await fetch(`${monitor}/metrics`)).text()
    expect(metrics).toContain('bot_turns_total{mode="sealed",outcome="ok"} 2')
    expect(metrics).toContain('bot_turns_total{mode="pi",outcome="ok"} 1')
    expect(metrics).toContain('bot_tokens_total{model="claude-x",direction="input"} 11')
    await stop(bot)

    const audit = join(place.dir, 'audit', 'audit.jsonl')
    expect(
      auditOf(audit).map(({ event, channel, speakerId, mode, outcome, keys }) => [
        event,
        channel,
        speakerId,
        mode,
        outcome,
        keys?.[0]?.rule,
      ]),
    ).toEqual([
      ['start', undefined, undefined, undefined, undefined, undefined],
      ['turn', 'room:team', 'u-ann', 'sealed', 'ok', 'channel room:*'],
      ['turn', 'room:team', 'u-ben', 'sealed', 'ok', 'channel room:team, speaker u-ben'],
      ['turn', 'room:agent', 'u-ann', 'pi', 'ok', 'channel room:agent'],
      ['stop', undefined, undefined, undefined, undefined, undefined],
    ])
    expect(statSync(audit).mode & 0o777).toBe(0o600)
    const written = readFileSync(audit, 'utf8') + bot.output() + metrics
    expect(written).not.toMatch(/sk-(team|ben|claude)|hello|from openai/)
    for (const line of bot.output().trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('level')
  })

  test('the Pi agent at a service that speaks Chat Completions: tools, text and tokens, with the speaker’s own key', async () => {
    const turns: Record<string, unknown>[] = []
    await using openai = await scriptedUpstream(({ body }, response) => {
      turns.push(JSON.parse(body))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const called = turns.length === 1
      const name = (JSON.parse(body).tools ?? []).map(
        (tool: { function: { name: string } }) => tool.function.name,
      )
      const call = { index: 0, id: 'call_1', type: 'function', function: { name: name[0], arguments: '{}' } }
      const deltas = called ? [{ tool_calls: [call] }] : [{ content: 'It is ' }, { content: 'late.' }]
      for (const delta of deltas)
        response.write(`data: ${JSON.stringify({ model: 'm', choices: [{ delta }] })}\n\n`)
      const end = { choices: [{ delta: {}, finish_reason: called ? 'tool_calls' : 'stop' }] }
      response.write(`data: ${JSON.stringify(end)}\n\n`)
      const usage = { prompt_tokens: 20, completion_tokens: 4 }
      response.end(`data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`)
      return undefined
    })
    using place = operatorDir(
      {
        providers: { own: { api: 'openai', url: `${openai.url}/v1`, model: 'gpt-x', allowHttp: true } },
        channels: { 'room:agent': { ...sealed, mode: 'pi' } },
      },
      [{ channel: 'room:agent', speaker: 'u-ann', key: 'env:ANN', provider: 'own' }],
    )
    await using bot = run(place.config, { ANN: 'sk-ann-0123456789' })
    const { reply, receipt } = await ask(bot, 'room:agent', 'u-ann', 'what time is it?')
    expect([reply, receipt.ok]).toEqual(['It is late.', true])
    expect(receipt).toMatchObject({
      tokens: { input: 40, output: 8 },
      payments: [{ rule: 'channel room:agent, speaker u-ann' }],
    })
    expect(openai.seen.map(({ url, headers }) => [url, headers.authorization, headers['x-api-key']])).toEqual(
      [
        ['/v1/chat/completions', 'Bearer sk-ann-0123456789', undefined],
        ['/v1/chat/completions', 'Bearer sk-ann-0123456789', undefined],
      ],
    )
    expect(turns[1]?.messages).toEqual(
      expect.arrayContaining([expect.objectContaining({ role: 'tool', tool_call_id: 'call_1' })]),
    )
    expect((await ask(bot, 'room:agent', 'u-ben', 'and mine?')).receipt).toMatchObject({
      category: 'credential',
    })
    expect(openai.seen).toHaveLength(2)
  })

  test('without providers a stand-in answers, in both modes, and says so', async () => {
    const channels = { 'room:lobby': sealed, 'room:agent': { ...sealed, mode: 'pi' } }
    using place = operatorDir({ channels }, [{ channel: 'room:*', key: 'env:ANY' }])
    await using bot = run(place.config, { ANY: 'sk-any-0123456789' })
    expect((await ask(bot, 'room:lobby', 'u-ann', 'hello')).reply).toContain('Hello Ann!')
    expect((await ask(bot, 'room:agent', 'u-ann', 'hello')).reply).toContain('hello')
    expect(bot.output()).toContain('WARNING: there are no providers')
  })
})

describe('a bot that runs for a year', () => {
  const kept = { channels: { 'room:lobby': sealed, 'room:later': { ...sealed, on: false } } }
  const rules = [{ channel: 'room:*', key: 'env:ANY' }]
  const env = { ANY: 'sk-any-0123456789' }

  test('memory and switches survive a restart, and a restored backup goes on where it was', async () => {
    using place = operatorDir(kept, rules)
    using other = operatorDir(kept, rules)
    {
      await using bot = run(place.config, env)
      await ask(bot, 'room:lobby', 'u-ann', 'remember that I like tea')
      await stop(bot)
      expect(turnDirectories(join(place.dir, 's'))).toEqual([])
    }
    // The backup of docs/operators.md: everything but sockets and stages.
    execFileSync('cp', ['-a', join(place.dir, 's'), join(other.dir, 's')])
    rmSync(join(other.dir, 's', 'run'), { recursive: true })
    for (const { config } of [place, other]) {
      await using bot = run(config, env)
      expect((await ask(bot, 'room:lobby', 'u-ann', 'what do you remember?')).reply).toContain('I like tea')
      await stop(bot)
    }
  })

  test('SIGTERM lets a turn come to its end, and takes no message any more', async () => {
    let asked = () => {}
    let answer = () => {}
    const began = new Promise<void>((done) => {
      asked = done
    })
    const let_ = new Promise<void>((done) => {
      answer = done
    })
    await using service = await scriptedUpstream(async () => {
      asked()
      await let_
      return chatText('the last word')
    })
    using place = operatorDir(
      {
        ...kept,
        providers: { own: { api: 'openai', url: `${service.url}/v1`, model: 'm', allowHttp: true } },
      },
      rules,
    )
    await using bot = run(place.config, env)
    const page = visit(await bot.address)
    const monitor = await monitorOf(bot)
    const seen = page.events(
      (events) => replies(events).length === 2,
      () => page.say('room:lobby', 'u-ann', 'hello'),
    )
    await began
    bot.child.kill('SIGTERM')
    await expect.poll(async () => (await fetch(`${monitor}/healthz`)).status, { interval: 10 }).toBe(503)
    await page.say('room:lobby', 'u-ben', 'and me?')
    await expect.poll(() => service.seen.length).toBe(1)
    answer()
    const said = replies(await seen).map(({ text }) => text)
    expect(said.sort()).toEqual([
      'I am about to be restarted. Please say that again in a minute.',
      'the last word',
    ])
    expect(await bot.exited).toBe(0)
    expect(service.seen).toHaveLength(1)
    expect(bot.output()).toMatch(/Stopped\.\n$/)
  })

  test('decision 34: a bad edit of the key file is told within a second, with its line, and the last good rules go on', async () => {
    using place = operatorDir(kept, rules)
    await using bot = run(place.config, env)
    await bot.address
    place.put('keys.json', '{\n  "rules": [\n    { "channel": "room:*" }\n  ]\n}')
    await expect
      .poll(() => bot.output(), { timeout: 5_000 })
      .toContain(`WARNING: ${place.keys}:3: rules[0].key must be`)
    expect((await ask(bot, 'room:lobby', 'u-ann', 'hello')).reply).toContain('Hello Ann!')
    place.put('keys.json', '{ "rules": [] }')
    expect((await ask(bot, 'room:lobby', 'u-ann', 'hello')).receipt).toMatchObject({ category: 'credential' })
    expect(await (await fetch(`${await monitorOf(bot)}/metrics`)).text()).toContain(
      'bot_key_file_problems_total 1',
    )
    rmSync(place.keys)
    const health = await fetch(`${await monitorOf(bot)}/healthz`)
    expect([health.status, await health.json()]).toEqual([
      503,
      {
        status: 'failing',
        checks: { engine: 'ok', keys: 'The key file cannot be used: "bot keys check" says why.' },
      },
    ])
  })

  test('with content the audit log has what was said, and no key', async () => {
    using place = operatorDir({ ...kept, audit: { path: './audit.jsonl', content: true } }, rules)
    rmSync(join(place.dir, 'audit.jsonl'), { force: true })
    await using bot = run(place.config, env)
    await ask(bot, 'room:lobby', 'u-ann', 'hello there')
    await stop(bot)
    const lines = auditOf(join(place.dir, 'audit.jsonl'))
    expect(lines.find(({ event }) => event === 'message')).toMatchObject({
      speakerId: 'u-ann',
      text: 'hello there',
    })
    expect(lines.find(({ event }) => event === 'reply').text).toContain('Hello Ann!')
    expect(JSON.stringify(lines)).not.toContain('sk-any')
  })
})

describe('init and doctor', () => {
  const command = async (args: readonly string[], env: Record<string, string> = {}) => {
    const ran = runDemo(args, { env })
    return { code: await ran.exited, output: ran.output() }
  }

  test('what init writes is right at once, for one account alone, and is never written over', async () => {
    const dir = freshStateDir()
    try {
      const made = await command([
        'init',
        '--dir',
        dir,
        '--yes',
        '--provider',
        'anthropic',
        '--mode',
        'pi',
        '--key',
        'env:K',
        '--owner',
        '42',
      ])
      expect(made.code).toBe(0)
      expect(made.output).toContain('1. Set K in the environment of the bot.')
      for (const name of ['bot.jsonc', 'keys.json', 'bot.schema.json', 'keys.schema.json']) {
        expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600)
      }
      const check = await command(['keys', 'check', '--config', join(dir, 'bot.jsonc')], {
        K: 'sk-k-0123456789',
      })
      expect(check).toEqual({
        code: 0,
        output: `${join(dir, 'keys.json')} is good: its 2 rules lead to a key.\n`,
      })
      const told = await command(
        ['keys', 'explain', '--config', join(dir, 'bot.jsonc'), '--channel', 'discord:1'],
        { K: 'sk-k-0123456789' },
      )
      expect(told.output).toBe(
        'discord:1: the rule for channel discord:* chooses env:K, which leads to a key. It is for provider anthropic.\n',
      )
      const before = readFileSync(join(dir, 'bot.jsonc'), 'utf8')
      const again = await command(['init', '--dir', dir, '--yes'])
      expect([again.code, again.output]).toEqual([
        1,
        expect.stringContaining('is there already, and is left alone'),
      ])
      expect(readFileSync(join(dir, 'bot.jsonc'), 'utf8')).toBe(before)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })

  test('doctor tries everything, spends a token when it may, and says how to mend what fails', async () => {
    await using openai = await scriptedUpstream(() => chatText('x'))
    await using refusing = await scriptedUpstream((_, response) => {
      response.writeHead(401).end()
      return undefined
    })
    const own = (url: string) => ({ api: 'openai', url: `${url}/v1`, model: 'm', allowHttp: true })
    using place = operatorDir(
      {
        channels: { 'room:a': sealed, 'room:b': sealed },
        providers: { good: own(openai.url), bad: own(refusing.url), gone: own('http://127.0.0.1:65534') },
        surfaces: { web: { port: 0, token: 'env:PAGE_TOKEN' } },
        audit: { path: './audit/audit.jsonl' },
      },
      [
        { channel: 'room:a', key: 'env:GOOD', provider: 'good' },
        { channel: 'room:b', key: 'env:GOOD', provider: 'bad' },
        { channel: 'room:b', speaker: 'u-ann', key: 'env:GOOD', provider: 'gone' },
      ],
    )
    const args = ['doctor', '--config', place.config, '--json', '--call']
    const { code, output } = await command(args, { GOOD: 'sk-good-0123456789' })
    expect(code).toBe(1)
    const rows = new Map(
      (JSON.parse(output) as { id: string; state: string; found: string; mend?: string }[]).map((row) => [
        row.id,
        row,
      ]),
    )
    const states = Object.fromEntries([...rows].map(([id, { state }]) => [id, state]))
    expect(states).toEqual({
      config: 'ok',
      account: 'ok',
      state: 'ok',
      keys: 'ok',
      routes: 'ok',
      engine: 'ok',
      'worker-sealed': 'ok',
      'provider good': 'ok',
      'provider bad': 'failed',
      'provider gone': 'failed',
      page: 'ok',
      monitor: 'ok',
      'page-token': 'failed',
      audit: 'ok',
    })
    expect(rows.get('worker-sealed')?.found).toContain('NO sandbox')
    expect(rows.get('provider bad')?.found).toContain('it does not take the key')
    expect(rows.get('provider gone')?.found).toMatch(/cannot be reached: (ECONNREFUSED|ConnectionRefused)/)
    for (const { state, mend } of rows.values()) expect(mend !== undefined).toBe(state === 'failed')
    expect(JSON.parse(openai.seen[0]?.body ?? '')).toMatchObject({ model: 'm', max_tokens: 1 })
    expect(output).not.toContain('sk-good')
  })

  test('doctor with a broken configuration names the line, and with a broken key file skips what needs it', async () => {
    using place = operatorDir({ channels: { 'room:a': sealed }, workers: { driver: 'process' } }, [
      { channel: 'room:a', key: 'env:NONE' },
    ])
    const { code, output } = await command(['doctor', '--config', place.config])
    expect(code).toBe(1)
    expect(output).toMatch(/^FAIL {2}keys .*keys\.json:3: channel room:a: env:NONE is not set/m)
    expect(output).toContain('→ Mend the lines of')
    expect(output).toMatch(/^skip {2}routes/m)
    place.put('bot.jsonc', '{\n  "stateDir": 1\n}')
    const broken = await command(['doctor', '--config', place.config])
    expect([broken.code, broken.output]).toEqual([
      1,
      expect.stringContaining('bot.jsonc:2: stateDir: must be string.'),
    ])
  })
})
