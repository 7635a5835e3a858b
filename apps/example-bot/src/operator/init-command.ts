import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import type { InitConfig } from '../config.ts'
import { BotError } from '../errors.ts'
import { BotFileSchema } from './bot-schema.ts'
import { type InitAnswers, initFiles, PRESETS, readAnswers } from './init-files.ts'
import { readBotFile } from './read-bot-file.ts'

/**
 * `init`: asks what it must know, when a person sits there and `--yes` is not given, and writes a configuration that
 * works as soon as the key is in its place. Prints what to do next.
 *
 * @throws BotError `usage` for an answer that cannot be used, `config` when there is a configuration already.
 */
export async function initCommand(config: InitConfig): Promise<void> {
  const { dir } = config
  for (const name of ['bot.jsonc', 'keys.json']) {
    if (existsSync(join(dir, name))) {
      throw new BotError(
        'config',
        `${join(dir, name)} is there already, and is left alone: name another directory with --dir, or edit it.`,
      )
    }
  }
  const asks = !config.yes && process.stdin.isTTY === true
  const answers = readAnswers(asks ? await ask(config) : config)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const written = write(dir, answers)
  readBotFile(join(dir, 'bot.jsonc'))
  process.stdout.write(`${nextSteps(dir, answers, written)}\n`)
}

async function ask(given: InitConfig): Promise<InitConfig> {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  const question = async (words: string, usual: string, known: string | undefined): Promise<string> =>
    known ?? ((await lines.question(`${words} [${usual}] `)).trim() || usual)
  try {
    const provider = await question('Model service (openai, anthropic, stand-in)?', 'openai', given.provider)
    const preset = PRESETS[provider as keyof typeof PRESETS]
    if (preset === undefined) return { ...given, provider }
    const { url, model } = preset
    const key = `file:./${provider}.key`
    const service = {
      url: await question('Its base URL?', url, given.url),
      model: await question('Which model?', model, given.model),
      key: await question('Where is the key (env:NAME, file:PATH, command:PROGRAM)?', key, given.key),
    }
    const modes = 'A fresh sealed worker for each message, or Pi (sealed, pi)?'
    const mode = await question(modes, 'sealed', given.mode)
    const owner = await question('Your Discord user id, or "none"?', 'none', given.owner)
    return { ...given, ...service, provider, mode, ...(owner === 'none' ? {} : { owner }) }
  } finally {
    lines.close()
  }
}

function write(dir: string, answers: InitAnswers): readonly string[] {
  const files = initFiles(answers)
  const keySchema = new URL(import.meta.resolve('@sandbox/credential-scope/keys.schema.json'))
  const all: readonly (readonly [name: string, text: string])[] = [
    ['bot.jsonc', files.bot],
    ['keys.json', files.keys],
    ['bot.schema.json', `${JSON.stringify(BotFileSchema, undefined, 2)}\n`],
    ['keys.schema.json', readFileSync(keySchema, 'utf8')],
    ...(answers.provider === 'stand-in'
      ? [['stand-in.key', `sk-stand-in-${randomBytes(12).toString('hex')}\n`] as const]
      : []),
  ]
  const fresh = all.filter(([name]) => !existsSync(join(dir, name)))
  for (const [name, text] of fresh) writeFileSync(join(dir, name), text, { mode: 0o600, flag: 'wx' })
  return fresh.map(([name]) => name)
}

function nextSteps(dir: string, { key, provider, owner }: InitAnswers, written: readonly string[]): string {
  const file = /^file:(.*)$/.exec(key)?.[1]
  const variable = /^env:(.*)$/.exec(key)?.[1]
  const steps = [
    ...(provider !== 'stand-in' && file !== undefined
      ? [`Put your key there: (umask 077; cat > ${join(dir, file)}), then paste it, Enter, Ctrl-D.`]
      : []),
    ...(variable === undefined ? [] : [`Set ${variable} in the environment of the bot.`]),
    ...(owner === undefined ? [] : ['Set DISCORD_TOKEN in the environment of the bot.']),
    `Try everything: bot doctor --config ${join(dir, 'bot.jsonc')}`,
    `Run it: bot --config ${join(dir, 'bot.jsonc')}`,
  ]
  return [
    `Written in ${dir}: ${written.join(', ')}.`,
    ...steps.map((step, index) => `${index + 1}. ${step}`),
  ].join('\n')
}
