import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import type { ChannelKey } from '@sandbox/roundtable-plugin'
import type { Mode } from './routes.ts'

/** Options of {@link turnOnNewChannels}. */
export interface NewChannelsOptions {
  /** Absolute path of the list of channels that were turned on before, in a private directory. */
  readonly path: string
  readonly mode: Mode
  /** The channels of the configuration. */
  readonly channels: readonly ChannelKey[]
  readonly store: { enable(channel: ChannelKey): boolean }
}

/**
 * Turns on channels that the configuration names for the first time. What the owner turned off since stays off.
 *
 * @throws TypeError for a list that is none
 */
export function turnOnNewChannels({ path, mode, channels, store }: NewChannelsOptions): void {
  const before = read(path)
  const known = new Set(before)
  const named = channels.map((channel) => [`${mode} ${channel}`, channel] as const)
  for (const [name, channel] of named) if (!known.has(name)) store.enable(channel)
  const others = before.filter((name) => !name.startsWith(`${mode} `))
  const now = [...others, ...named.map(([name]) => name)].sort()
  if (JSON.stringify(now) === JSON.stringify(before)) return
  writeFileSync(`${path}.new`, `${JSON.stringify(now, undefined, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

function read(path: string): readonly string[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const value: unknown = JSON.parse(text)
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value
  throw new TypeError(`${path} is no list of channels: move it away`)
}
