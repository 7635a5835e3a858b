import { keyFile } from '@sandbox/credential-scope/sources'

/**
 * `keys check`: reads the key file and every key in it as the bot does. Returns what to print.
 *
 * @throws CredentialError `source_invalid` with all that is wrong.
 */
export function keysCheck(options: { path: string; env?: NodeJS.ProcessEnv }): string {
  keyFile(options).check()
  return `${options.path} is good: every rule leads to a key.`
}

/**
 * `keys explain`: which rule chooses the key of a channel and speaker. Returns what to print; never a key, and no
 * fingerprint, since fingerprints mean nothing in another process than the bot's.
 *
 * @throws CredentialError `source_invalid` when the file cannot be used.
 */
export function keysExplain(options: {
  path: string
  channel: string
  /** An id; empty stands for anybody without a rule of their own. */
  speaker: string
  env?: NodeJS.ProcessEnv
}): string {
  const { channel, speaker: id } = options
  const told = keyFile(options).explain({ channel, speaker: { id, name: id } })
  const who = id === '' ? channel : `${channel}, speaker ${id}`
  if (told.rule === undefined) return `${who}: no rule matches. Calls are refused, nothing is sent.`
  const found =
    told.fingerprint === undefined ? 'which leads to NO key: calls are refused' : 'which leads to a key'
  return `${who}: the rule for ${told.rule} chooses ${told.source}, ${found}.`
}
