import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import { HeldDirectory } from './held-directory.ts'
import { type Account, give } from './private-directory.ts'
import { checkChannel } from './turn-snapshot.ts'

const RECORD = '.channel-key'

/** Longest key of a Pi channel. */
const KEY_CHARS = 256

/** The name of a channel's directory: not injective, which is why there is a record of the key beside it. */
export function channelSegment(channel: ChannelKey): string {
  return channel.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/**
 * Opens the directory of a channel, and makes it when missing. Workers never see it, only two directories in it.
 * @throws SandboxPluginError `input_invalid`; `channel_alias` when another channel has it; `root_refused`
 */
export function openChannelRoot(partyDir: string, channel: ChannelKey, owner: Account): HeldDirectory {
  checkKey(channel)
  const path = join(partyDir, channelSegment(channel))
  const root = openOrMake(path, owner)
  try {
    const recorded = readRecord(root) ?? writeRecord(root, channel)
    if (recorded === channel) return root
    throw new SandboxPluginError(
      'channel_alias',
      `The channel ${channel} is an alias of ${recorded}: both would use ${path}. Give one of them another key; nothing was touched.`,
    )
  } catch (cause) {
    root[Symbol.dispose]()
    throw cause
  }
}

function checkKey(channel: ChannelKey): void {
  checkChannel(channel)
  if (channel.length > KEY_CHARS) {
    throw new SandboxPluginError('input_invalid', `channel has at most ${KEY_CHARS} characters`)
  }
  // A lone half of a character has no bytes of its own: two keys would have one record.
  if (Buffer.from(channel).toString() !== channel) {
    throw new SandboxPluginError('input_invalid', 'channel holds half of a character')
  }
}

function openOrMake(path: string, owner: Account): HeldDirectory {
  try {
    mkdirSync(path, { mode: 0o700 })
    give(path, owner)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw refused(path, 'cannot be made', cause)
  }
  try {
    return HeldDirectory.open(path)
  } catch (cause) {
    throw refused(path, 'is no directory of its own. Move it away', cause)
  }
}

function readRecord(root: HeldDirectory): string | undefined {
  try {
    return readFileSync(root.at(RECORD), {
      encoding: 'utf8',
      flag: constants.O_RDONLY | constants.O_NOFOLLOW,
    })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw refused(root.at(RECORD), 'cannot be read. Look who changed it', cause)
  }
}

/** Whole or not at all, and never over one that is there: a link to a finished file is made, which is exclusive. */
function writeRecord(root: HeldDirectory, channel: ChannelKey): string {
  const draft = root.at(`${RECORD}.${randomBytes(6).toString('hex')}`)
  const file = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
  try {
    writeSync(file, channel)
    fsyncSync(file)
    linkSync(draft, root.at(RECORD))
    root.sync()
    return channel
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    return readRecord(root) as string
  } finally {
    closeSync(file)
    unlinkSync(draft)
  }
}

function refused(path: string, problem: string, cause: unknown): SandboxPluginError {
  return new SandboxPluginError('root_refused', `${path} ${problem}.`, { cause })
}
