import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStateDir, type StateDir } from '../state-dir.ts'

/** A state directory that one running check has for itself. */
export interface CheckState {
  readonly state: StateDir
  /** Removes the directory. */
  release(): void
}

const OWNER = 'check.owner'

/**
 * Takes the first state directory that no living check uses. One that a killed check left is taken over with its
 * run root, so that the bot's own sweep at start finds the workers of then; its keys and workspaces go.
 *
 * @throws BotError `state_dir`.
 */
export function claimCheckState(parentDir: string = tmpdir()): CheckState {
  const uid = process.getuid?.() ?? 0
  for (let number = 0; ; number += 1) {
    const path = join(parentDir, `sbx-check-${uid}-${number}`)
    const state = openStateDir({ path, uid })
    if (!claim(path)) continue
    for (const name of readdirSync(path)) {
      if (name !== OWNER && name !== 'run') rmSync(join(path, name), { recursive: true, force: true })
    }
    mkdirSync(state.keysDir, { mode: 0o700 })
    mkdirSync(join(path, 'state'), { mode: 0o700 })
    return { state, release: () => rmSync(path, { recursive: true, force: true }) }
  }
}

/** True when the directory is this process's now. */
function claim(path: string): boolean {
  const owner = join(path, OWNER)
  try {
    const named = readFileSync(owner, 'utf8')
    if (isAlive(named)) return false
    // Only one of several that find it dead can move it away.
    renameSync(owner, `${owner}.${randomBytes(4).toString('hex')}`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  try {
    writeFileSync(owner, mark(process.pid) ?? '', { mode: 0o600, flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function isAlive(named: string): boolean {
  const pid = Number(named.split(' ')[0])
  return Number.isSafeInteger(pid) && pid > 0 && mark(pid) === named
}

/** A process by its id and its start time, field 22 of `/proc/<pid>/stat` (proc(5)), since ids come again. */
function mark(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // Field 3 is the state: a zombie is dead.
    return fields[0] === 'Z' ? undefined : `${pid} ${fields[19]}`
  } catch {
    return undefined
  }
}
