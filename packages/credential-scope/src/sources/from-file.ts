import { resolve } from 'node:path'
import type { CredentialGetter } from '../credential-source.ts'
import type { CredentialError } from '../errors.ts'
import { namedSource } from '../traced-getter.ts'
import { LastGoodFile, usableKey } from './last-good-file.ts'

const KEY_BYTES = 64 * 1024

/**
 * A credential that is the whole text of a file, white space around it aside. The file must have mode 0600 or
 * stricter and belong to this process's user; a link is not followed. Its metadata is looked at on each call, so a
 * changed file is used by the next call; a broken one keeps the last good credential and is reported once through
 * `onProblem`; a deleted one is refused, which fails the call.
 */
export function fromFile(options: {
  path: string
  onProblem?: (problem: CredentialError) => void
}): CredentialGetter {
  const path = resolve(options.path)
  const file = new LastGoodFile({
    path,
    maxBytes: KEY_BYTES,
    parse: (text) => usableKey(text, path),
    onProblem: options.onProblem,
  })
  return namedSource(`file:${options.path}`, () => file.current())
}
