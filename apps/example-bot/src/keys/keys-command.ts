import { CredentialError, explain } from '@sandbox/credential-scope'
import type { KeyFile } from '@sandbox/credential-scope/sources'
import { plain } from '../plain-text.ts'

/** Options of both commands. */
export interface KeysCommandOptions {
  readonly keys: KeyFile
  /** Of the key file, for the answer. */
  readonly path: string
}

/**
 * `keys check`: reads the key file and every key in it as the bot does; commands are run and logins are read, too.
 * Returns what to print.
 *
 * @throws CredentialError `source_invalid` with all that is wrong.
 */
export async function keysCheck({ keys, path }: KeysCommandOptions): Promise<string> {
  keys.check()
  const problems: string[] = []
  const deferred = keys.rules().filter(({ key }) => /^(command|oauth):/.test(key))
  for (const { channel, speaker = 'anybody' } of deferred) {
    const scope = { channel: channel.replace(/\*$/, 'any'), speaker: { id: speaker, name: speaker } }
    const problem = await problemOf(keys, scope)
    if (problem !== undefined) problems.push(problem)
  }
  if (problems.length > 0) throw new CredentialError('source_invalid', problems.join('\n'))
  const count = keys.rules().length
  if (count === 0) return `${path} has no rule: every call is refused.`
  return `${path} is good: ${count === 1 ? 'its one rule leads' : `its ${count} rules lead`} to a key.`
}

/**
 * `keys explain`: which rule chooses the key of a channel and speaker. Returns what to print; never a key, and no
 * fingerprint, since fingerprints mean nothing in another process than the bot's.
 *
 * @throws CredentialError `source_invalid` when the file cannot be used.
 */
export async function keysExplain(
  options: KeysCommandOptions & {
    channel: string
    /** An id; empty stands for anybody without a rule of their own. */
    speaker: string
  },
): Promise<string> {
  const { channel, speaker: id, keys } = options
  const scope = { channel, speaker: { id: id === '' ? 'anybody' : id, name: id } }
  const told = keys.explain(scope)
  const who = plain(id === '' ? channel : `${channel}, speaker ${id}`)
  if (told.rule === undefined) return `${who}: no rule matches. Calls are refused, nothing is sent.`
  const found =
    told.deferred === true
      ? (await explain(keys.getter, scope)).outcome === 'ok'
      : told.fingerprint !== undefined
  const { provider, model } = told
  const where = [
    ...(provider === undefined ? [] : [`provider ${provider}`]),
    ...(model === undefined ? [] : [`model ${model}`]),
  ]
  const leads = found ? 'which leads to a key' : 'which leads to NO key: calls are refused'
  const use = where.length === 0 ? '' : ` It is for ${where.join(', ')}.`
  return `${who}: the rule for ${told.rule} chooses ${told.source}, ${leads}.${use}`
}

async function problemOf(
  keys: KeyFile,
  scope: Parameters<KeyFile['explain']>[0],
): Promise<string | undefined> {
  const { rule, source } = keys.explain(scope)
  try {
    const answer = await keys.getter(scope)
    const token = typeof answer === 'object' ? answer?.token : answer
    return token ? undefined : `${rule}: ${source} gives no key`
  } catch (error) {
    return (error as Error).message
  }
}
