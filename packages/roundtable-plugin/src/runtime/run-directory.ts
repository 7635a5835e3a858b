import { lstat, unlink } from 'node:fs/promises'
import { removeWorkspace } from '@sandbox/docker-worker'

/**
 * Removes the directory of a worker that runs no more; one that is not there is no error. A plain process may have
 * filled it as it could its workspace, or put something else in the place of it: nothing is followed.
 */
export async function removeRunDir(path: string): Promise<void> {
  try {
    const there = await lstat(path)
    await (there.isDirectory() ? removeWorkspace(path) : unlink(path))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
