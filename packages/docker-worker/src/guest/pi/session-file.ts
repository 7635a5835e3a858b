import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { SessionManager } from '@earendil-works/pi-coding-agent'
import { setAside } from '../shared/atomic-file.ts'
import { logEvent } from './log.ts'
import { ownDirectory } from './outbox.ts'

/** Beyond this a conversation is not loaded: a worker has little memory. */
const SESSION_BYTES = 128 * 1024 * 1024

/**
 * The conversation of the channel: the newest session file in the workspace, or a new one. One that cannot be read is
 * set aside as `.bad`, so that a broken file costs its conversation and never the channel.
 */
export function openConversation(workspace: string): SessionManager {
  const folder = join(workspace, 'sessions')
  ownDirectory(folder)
  for (const path of sessionFiles(folder)) {
    try {
      return SessionManager.open(path, folder, workspace)
    } catch {
      logEvent('session set aside', { moved: setAside(path) })
    }
  }
  return SessionManager.create(workspace, folder)
}

/** Regular files by age, the newest first. What is a link, too large, or gone meanwhile counts as not there. */
function sessionFiles(folder: string): readonly string[] {
  const found = readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => {
      const path = join(folder, name)
      // A name that is no text leads to nothing.
      const stat = lstatSync(path, { throwIfNoEntry: false })
      if (!stat?.isFile() || stat.size === 0 || stat.size > SESSION_BYTES) return []
      return [{ path, mtimeMs: stat.mtimeMs }]
    })
  return found.sort((a, b) => b.mtimeMs - a.mtimeMs).map(({ path }) => path)
}
