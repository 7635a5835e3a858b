import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** The account of the workers in tests: a fixed one in a root shell, else the one that runs the tests. */
export const account =
  process.geteuid?.() === 0
    ? { uid: 64_200, gid: 64_200 }
    : { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1 }

/** The options that a runtime needs to use {@link account}. */
export const userOptions = process.geteuid?.() === 0 ? account : {}

/** A fresh private directory of {@link account}, reachable for it, with a short path. */
export function ownDir(prefix = 'sbx-'): { readonly path: string } & Disposable {
  const path = mkdtempSync(join('/tmp', prefix))
  if (process.geteuid?.() === 0) chownSync(path, account.uid, account.gid)
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** A run root, a workspace root and a directory for state, all fresh. */
export function ownRoots() {
  const dir = ownDir()
  const state = mkdtempSync(join('/tmp', 'sbx-state-'))
  mkdirSync(join(state, 's'), { mode: 0o700 })
  return {
    runRoot: join(dir.path, 'r'),
    workspaceRoot: join(dir.path, 'w'),
    stateFile: join(state, 's', 'channels.json'),
    /** For whatever a test needs. */
    free: state,
    [Symbol.dispose]() {
      dir[Symbol.dispose]()
      rmSync(state, { recursive: true, force: true })
    },
  }
}
