import { randomBytes } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
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
 * Writes fresh demo keys and the `keys.json` that hands them out, all with mode 0600. `demo:nokey` gets none on
 * purpose. What was there is replaced, so a link in its place is not followed.
 */
export function writeDemoKeys(options: { dir: string }): DemoKeys {
  const keys = OWNERS.map((owner) => ({
    ...owner,
    key: `sk-demo-${owner.name}-${randomBytes(12).toString('hex')}`,
  }))
  for (const { name, key } of keys) put(join(options.dir, `${name}.key`), `${key}\n`)
  const rules = keys.map(({ name, channel, speaker }) => ({
    channel,
    ...(speaker === undefined ? {} : { speaker }),
    key: `file:./${name}.key`,
  }))
  const path = join(options.dir, 'keys.json')
  put(path, `${JSON.stringify({ rules }, undefined, 2)}\n`)
  return { path, keys }
}

function put(path: string, text: string): void {
  const fresh = `${path}.${randomBytes(6).toString('hex')}`
  writeFileSync(fresh, text, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, path)
}
