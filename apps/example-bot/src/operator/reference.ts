import { resolve } from 'node:path'
import { fromEnv, fromFile } from '@sandbox/credential-scope/sources'
import { BotError } from '../errors.ts'

/**
 * The secret that a setting refers to: `env:NAME`, or `file:PATH` relative to `directory`, mode 0600.
 *
 * @throws BotError `config`, naming the setting and never the secret.
 */
export async function readReference(
  reference: string,
  options: { readonly setting: string; readonly directory: string },
): Promise<string> {
  const value = reference.slice(reference.indexOf(':') + 1)
  const getter = reference.startsWith('env:')
    ? fromEnv(value)
    : fromFile({ path: resolve(options.directory, value) })
  try {
    const answer = await getter({ channel: 'bot:settings', speaker: { id: 'bot', name: 'bot' } })
    if (typeof answer === 'string' && answer.trim() !== '') return answer.trim()
  } catch (cause) {
    throw new BotError('config', `${options.setting}: ${(cause as Error).message}.`, { cause })
  }
  throw new BotError('config', `${options.setting}: ${reference} is not set.`)
}
