import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import {
  access,
  chmod,
  copyFile,
  link,
  lstat,
  mkdir,
  readdir,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { DriverError } from '../../errors.ts'
import type { WorkerUser } from '../../options.ts'
import { requireBundle } from '../image/guest-bundle.ts'

/** The two files that a worker process is started from. */
export interface StagedPrograms {
  readonly runtime: string
  readonly bundle: string
}

/** Makes a directory of the host's, and refuses one that somebody else made. */
export async function ownDirectory(path: string, mode: number): Promise<string> {
  await mkdir(path, { recursive: true, mode })
  const found = await lstat(path)
  if (!found.isDirectory() || found.uid !== process.getuid?.()) {
    throw new DriverError('options_invalid', `${path} has to be a directory of this account.`)
  }
  await chmod(path, mode)
  return path
}

/** The programs where they are, for a worker of the host's own account. */
export async function programsInPlace(runtime: string, bundle: string): Promise<StagedPrograms> {
  return { runtime: await requireProgram(runtime), bundle: await requireBundle(bundle) }
}

/**
 * Links the runtime and copies the bundle into `directory`, readable for everybody: another account cannot read a
 * checkout below a home of mode 0700. What is there already is used again; what is no longer used is deleted. Checks that `user` can reach
 * the directory.
 */
export async function stagePrograms(
  directory: string,
  sources: StagedPrograms,
  user: WorkerUser,
): Promise<StagedPrograms> {
  await requireReach(directory, user)
  const { runtime, bundle } = await programsInPlace(sources.runtime, sources.bundle)
  const staged = {
    runtime: await stageFile(directory, runtime, '', 0o755),
    bundle: await stageFile(directory, bundle, extname(bundle) === '.cjs' ? '.cjs' : '.mjs', 0o644),
  }
  for (const name of await readdir(directory)) {
    const path = join(directory, name)
    if (path !== staged.runtime && path !== staged.bundle) await rm(path, { force: true, recursive: true })
  }
  return staged
}

async function stageFile(directory: string, source: string, ending: string, mode: number): Promise<string> {
  const found = await stat(source)
  const { size, mtimeMs, ino, dev } = found
  const name = createHash('sha256')
    .update(JSON.stringify([source, size, mtimeMs, ino, dev]))
    .digest('hex')
  const target = join(directory, `${name.slice(0, 16)}${ending}`)
  const there = await lstat(target).catch(() => undefined)
  if (there?.isFile() && there.size === size) return target
  const draft = `${target}.${randomBytes(4).toString('hex')}`
  // A link is made at once, where the file is as it has to be: a runtime has a hundred megabytes. A bundle may be written
  // anew in its place, while workers are started from it: it is copied.
  const runs = (mode & 0o111) !== 0
  const fits = runs && found.uid === process.getuid?.() && (found.mode & 0o7777) === mode
  if (!fits || !(await linked(source, draft))) {
    await copyFile(source, draft, constants.COPYFILE_FICLONE)
    await chmod(draft, mode)
  }
  await rename(draft, target)
  // Still there when somebody else linked the same file meanwhile.
  await rm(draft, { force: true })
  return target
}

/** False where the two are on different file systems, or links are not allowed. */
async function linked(source: string, target: string): Promise<boolean> {
  return await link(source, target).then(
    () => true,
    () => false,
  )
}

async function requireProgram(path: string): Promise<string> {
  try {
    const real = await realpath(path)
    await access(real, constants.X_OK)
    return real
  } catch (cause) {
    throw new DriverError('runtime_unsuitable', `The runtime ${path} cannot be started.`, { cause })
  }
}

/** Every directory on the way has to let the account pass. */
async function requireReach(directory: string, user: WorkerUser): Promise<void> {
  for (let path = await realpath(directory); ; path = dirname(path)) {
    const { uid, gid, mode } = await stat(path)
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) {
      const text = `The workers' account (uid ${user.uid}) cannot pass ${path}: use a run root elsewhere, or "chmod o+x ${path}".`
      throw new DriverError('options_invalid', text)
    }
    if (path === dirname(path)) return
  }
}
