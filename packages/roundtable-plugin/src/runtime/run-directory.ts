import { lstat, rm } from 'node:fs/promises'
import { removeWorkspace } from '@sandbox/docker-worker'

/**
 * Removes the directory of a worker that runs no more; one that is not there is no error. A plain process may have
 * filled it as it could its workspace, or put something else in the place of it: nothing is followed.
 */
export async function removeRunDir(path: string): Promise<void> {
  const there = await lstat(path).catch(() => undefined)
  if (there?.isDirectory()) await removeWorkspace(path)
  else await rm(path, { force: true })
}
