import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ScriptedUpstream, type SeenRequest, scriptedUpstream } from '@sandbox/testing'
import { expect } from 'vitest'
import { freshStateDir, type RunningDemo, receipts, replies, runDemo, visit } from './run-demo.ts'

/** A directory as `bot init` leaves it, in the hands of a test. */
export interface OperatorDir extends Disposable {
  readonly dir: string
  readonly config: string
  readonly keys: string
  /** Writes a file with mode 0600. */
  put(name: string, text: string): void
}

/** Writes a configuration and its key file; left out, the usual parts: plain processes, a page on any port. */
export function operatorDir(bot: object, rules: readonly object[]): OperatorDir {
  const dir = freshStateDir()
  mkdirSync(dir, { mode: 0o711 })
  const put = (name: string, text: string) => writeFileSync(join(dir, name), text, { mode: 0o600 })
  const usual = {
    stateDir: './s',
    keys: './keys.json',
    workers: { driver: 'process' },
    surfaces: { web: { port: 0 } },
    monitor: { port: 0 },
  }
  put('bot.jsonc', `// of a test\n${JSON.stringify({ ...usual, ...bot }, undefined, 2)}`)
  put('keys.json', JSON.stringify({ rules }, undefined, 2))
  return {
    dir,
    config: join(dir, 'bot.jsonc'),
    keys: join(dir, 'keys.json'),
    put,
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  }
}

/** Starts the bot of a configuration. */
export const runBot = (config: string, env: Record<string, string> = {}): RunningDemo =>
  runDemo(['--config', config], { env, stateDir: freshStateDir() })

/** Says something on the page, waits for the answer, and returns it with its receipt. */
export async function ask(bot: RunningDemo, channel: string, speaker: string, text: string) {
  const page = visit(await bot.address)
  const seen = await page.events(
    (events) => replies(events).length > 0 && receipts(events).length > 0,
    () => page.say(channel, speaker, text),
  )
  return { reply: replies(seen)[0]?.text, receipt: receipts(seen)[0] }
}

/** Stops it in order. */
export async function stopBot(bot: RunningDemo): Promise<void> {
  bot.child.kill('SIGTERM')
  expect(await bot.exited).toBe(0)
}

/** A Messages service on loopback that answers with one text, in events. */
export function messagesService(text: (request: SeenRequest) => string): Promise<ScriptedUpstream> {
  return scriptedUpstream((request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const usage = { input_tokens: 11, output_tokens: 3 }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'x', content: [], usage }
    const events: readonly (readonly [string, object])[] = [
      ['message_start', { message: { ...message, stop_reason: null, stop_sequence: null } }],
      ['content_block_start', { index: 0, content_block: { type: 'text', text: '' } }],
      ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: text(request) } }],
      ['content_block_stop', { index: 0 }],
      ['message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage }],
      ['message_stop', {}],
    ]
    for (const [type, data] of events) {
      response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
    }
    response.end()
    return undefined
  })
}
