import { randomBytes } from 'node:crypto'
import { constants, lstatSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** A key of the demo and whom it is for. */
export interface DemoKey {
  /** The name of its file without `.key`. */
  readonly name: string
  readonly channel: string
  /** Absent: for every speaker of the channel. */
  readonly speaker?: string
  readonly key: string
}

/** The demo's keys as they were written. */
export interface DemoKeys {
  /** Absolute path of `keys.json`. */
  readonly path: string
  readonly keys: readonly DemoKey[]
}

const OWNERS: readonly Omit<DemoKey, 'key'>[] = [
  { name: 'alpha', channel: 'demo:alpha' },
  { name: 'beta', channel: 'demo:beta' },
  { name: 'ann', channel: 'demo:team', speaker: 'u-ann' },
  { name: 'ben', channel: 'demo:team', speaker: 'u-ben' },
]

/**
 * Writes the demo's keys and the `keys.json` that hands them out, all with mode 0600, where they are missing:
 * what is there is an operator's or another demo's, and stays. `demo:nokey` gets none on purpose.
 */
export function writeDemoKeys(options: { dir: string }): DemoKeys {
  const keys = OWNERS.map((owner) => ({
    ...owner,
    key: demoKey(join(options.dir, `${owner.name}.key`), owner.name),
  }))
  const rules = keys.map(({ name, channel, speaker }) => ({
    channel,
    ...(speaker === undefined ? {} : { speaker }),
    key: `file:./${name}.key`,
  }))
  const path = join(options.dir, 'keys.json')
  if (!exists(path)) put(path, `${JSON.stringify({ rules }, undefined, 2)}\n`)
  return { path, keys }
}

/** The key that the file holds, or a fresh one that it holds from now on. */
function demoKey(path: string, name: string): string {
  const known = exists(path)
    ? readFileSync(path, { encoding: 'utf8', flag: constants.O_RDONLY | constants.O_NOFOLLOW }).trim()
    : ''
  if (known !== '') return known
  const key = `sk-demo-${name}-${randomBytes(12).toString('hex')}`
  put(path, `${key}\n`)
  return key
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true
}

function put(path: string, text: string): void {
  const fresh = `${path}.${randomBytes(6).toString('hex')}`
  writeFileSync(fresh, text, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, path)
}
