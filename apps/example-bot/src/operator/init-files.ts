import type { InitConfig } from '../config.ts'
import { BotError } from '../errors.ts'

/** What is usual at a service. */
export const PRESETS = {
  openai: { url: 'https://api.openai.com/v1', model: 'gpt-5-mini' },
  anthropic: { url: 'https://api.anthropic.com', model: 'claude-sonnet-4-5' },
} as const

/** What `init` writes about. */
export interface InitAnswers {
  readonly provider: 'openai' | 'anthropic' | 'stand-in'
  readonly url: string
  readonly model: string
  readonly mode: 'sealed' | 'pi'
  readonly key: string
  /** Discord user id; absent without Discord. */
  readonly owner?: string
  readonly port: number
  /** Where state and audit log go: absolute, or relative to the configuration. */
  readonly stateDir: string
}

const PORT = 8080

/**
 * Fills in what was not said.
 *
 * @throws BotError `usage`, naming the flag.
 */
export function readAnswers(given: Omit<InitConfig, 'command' | 'dir' | 'yes'>): InitAnswers {
  const { provider = 'stand-in', mode = 'sealed', owner, port = PORT, stateDir = './state' } = given
  if (provider !== 'openai' && provider !== 'anthropic' && provider !== 'stand-in') {
    throw usage(`--provider is "openai", "anthropic" or "stand-in", not "${provider}".`)
  }
  if (mode !== 'sealed' && mode !== 'pi') throw usage(`--mode is "sealed" or "pi", not "${mode}".`)
  if (owner !== undefined && !/^[0-9]{1,20}$/.test(owner)) {
    throw usage('--owner is a Discord user id, a number: turn on developer mode and copy it from your name.')
  }
  const { key = `file:./${provider}.key` } = given
  if (!/^(env:[A-Za-z_][A-Za-z0-9_]*|(file|command):.+)$/.test(key)) {
    throw usage('--key is env:NAME, file:PATH or command:PROGRAM, never the key itself.')
  }
  const preset = provider === 'stand-in' ? { url: '', model: '' } : PRESETS[provider]
  const { url = preset.url, model = preset.model } = given
  return { provider, url, model, mode, key, ...(owner === undefined ? {} : { owner }), port, stateDir }
}

/** The text of both files. */
export function initFiles(answers: InitAnswers): { bot: string; keys: string } {
  return { bot: botText(answers), keys: keysText(answers) }
}

function botText({ provider, url, model, mode, owner, port, stateDir }: InitAnswers): string {
  const text = (value: unknown) => JSON.stringify(value)
  const loopback = url.startsWith('http:') ? ', "allowHttp": true' : ''
  const providers =
    provider === 'stand-in'
      ? '  // No "providers": a stand-in without intelligence answers. See docs/operators.md for real ones.\n'
      : `  // Model services. The key file says who spends which key at which of them.
  "providers": {
    ${text(provider)}: { "api": ${text(provider)}, "url": ${text(url)}, "model": ${text(model)}${loopback} }
  },
`
  const discordChannels =
    owner === undefined
      ? ''
      : `,
    // Every channel on Discord, once you turn it on there: /roundtable ${mode === 'pi' ? 'pi' : 'sandbox'} on
    "discord:*": { "mode": ${text(mode)} }`
  const discord =
    owner === undefined ? '' : `,\n    "discord": { "token": "env:DISCORD_TOKEN", "ownerId": ${text(owner)} }`
  return `// The bot. Comments are allowed; an editor that knows JSON schemas helps. Look at it with: bot doctor
{
  "$schema": "./bot.schema.json",
  "stateDir": ${text(stateDir)},
  "keys": "./keys.json",
${providers}  "channels": {
    // A channel of the page. sealed: a fresh container for each message; pi: a lasting one with the Pi agent.
    "room:lobby": {
      "mode": ${text(mode)},
      "title": "lobby",
      "speakers": [{ "id": "u-owner", "name": "Owner" }]
    }${discordChannels}
  },
  "surfaces": {
    "web": { "port": ${port} }, // on 127.0.0.1
    "terminal": true${discord}
  },
  "monitor": { "port": 9464 }, // /healthz and /metrics, on 127.0.0.1
  "audit": { "path": ${text(`${stateDir}/audit/audit.jsonl`)} } // who, where, which rule, tokens, outcome; no content
}
`
}

function keysText({ provider, key, owner }: InitAnswers): string {
  const named = provider === 'stand-in' ? '' : `, "provider": ${JSON.stringify(provider)}`
  const rule = (channel: string) => `    { "channel": "${channel}", "key": ${JSON.stringify(key)}${named} }`
  const rules = [rule('room:*'), ...(owner === undefined ? [] : [rule('discord:*')])]
  return `// Who pays. A rule with a "speaker" beats one without, a whole channel beats a pattern. No rule: no key, no call.
// A change is used by the next call. Look at it with: bot keys check
{
  "$schema": "./keys.schema.json",
  "rules": [
${rules.join(',\n')}
  ]
}
`
}

function usage(sentence: string): BotError {
  return new BotError('usage', `${sentence} See --help.`)
}
