import { createHash, randomBytes } from 'node:crypto'
import { closeSync, constants, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxPluginError } from '../errors.ts'

/**
 * The mark of an installation: 32 lower-case hexadecimal digits, the same after a restart. A random 0600 file in the
 * root, bound to the root's real path, so that a copied root is another installation.
 * @throws SandboxPluginError `root_refused`
 */
export function readInstallId(root: string): string {
  const path = join(root, 'install-id')
  const secret = readId(path) ?? writeId(path)
  return createHash('sha256').update(`${secret}\0${root}`).digest('hex').slice(0, 32)
}

function readId(path: string): string | undefined {
  try {
    const text = readFileSync(path, {
      encoding: 'utf8',
      flag: constants.O_RDONLY | constants.O_NOFOLLOW,
    }).trim()
    // An empty or cut file is what a crash leaves: a new id is written, and nothing bears the old one's marks.
    return /^[0-9a-f]{64}$/.test(text) ? text : undefined
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new SandboxPluginError('root_refused', `${path} cannot be read. Remove it, or make it yours.`, {
      cause,
    })
  }
}

function writeId(path: string): string {
  const id = randomBytes(32).toString('hex')
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW
  const file = openSync(path, flags, 0o600)
  try {
    writeSync(file, `${id}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  return id
}
