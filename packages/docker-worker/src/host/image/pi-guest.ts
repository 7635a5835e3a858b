import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { DriverError, stopIfAborted } from '../../errors.ts'
import { guestFile, requireBundle } from './guest-bundle.ts'
import type { ImageGuest } from './image-archive.ts'
import type { Runtime } from './runtime-files.ts'
import type { TarEntry } from './tar.ts'

const run = promisify(execFile)
const CACHE_MS = 120_000

/** Where a Pi image keeps what it is made of. */
export const PI_IMAGE_FILES = {
  start: '/sandbox/pi-start.cjs',
  agent: '/sandbox/pi-agent.cjs',
  cache: '/sandbox/pi-agent.cache',
  licences: '/sandbox/pi-licences.txt',
  content: '/sandbox/content',
} as const

/** What a Pi image is made from. */
export interface PiGuestParts {
  readonly runtime: Runtime
  /** Default: the agent of this package. */
  readonly bundle?: string
  /** The operator's content folder. */
  readonly content?: string
  readonly signal?: AbortSignal
}

/**
 * The Pi guest: a layer with the agent, one with the operator's content if there is any, and, for Node, the agent's code
 * cache, made by running it once here with the runtime of the image. Throws `bundle_missing`, `options_invalid` for
 * content that cannot be put into an image, and from `derived()` `runtime_unsuitable` when the agent does not get through a turn.
 */
export async function piGuest({ runtime, bundle, content, signal }: PiGuestParts): Promise<ImageGuest> {
  const agent = await requireBundle(bundle ?? guestFile('pi-agent.cjs'))
  const start = await requireBundle(guestFile('pi-start.cjs'))
  const licences = join(dirname(start), 'pi-licences.txt')
  const file = async (path: string, source: string): Promise<TarEntry> => ({
    path: path.slice(1),
    mode: 0o644,
    content: await readFile(source),
  })
  const program = [await file(PI_IMAGE_FILES.start, start), await file(PI_IMAGE_FILES.agent, agent)]
  if (bundle === undefined) program.push(await file(PI_IMAGE_FILES.licences, licences))
  return {
    kind: 'pi',
    entry: PI_IMAGE_FILES.start,
    layers: [program, ...(content === undefined ? [] : [await contentEntries(content)])],
    ...(runtime.kind === 'node' ? { derived: () => codeCache(runtime, start, agent, signal) } : {}),
  }
}

/** Runs the agent once in an empty directory, with an empty environment, and takes V8's code cache of that run. */
async function codeCache(
  runtime: Runtime,
  start: string,
  agent: string,
  signal: AbortSignal | undefined,
): Promise<readonly TarEntry[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-build-'))
  const cache = join(folder, 'cache')
  try {
    await run(runtime.path, [start, '--make-cache', cache, agent], {
      cwd: folder,
      env: { HOME: folder, TMPDIR: folder },
      timeout: CACHE_MS,
      ...(signal === undefined ? {} : { signal }),
    })
    return [{ path: PI_IMAGE_FILES.cache.slice(1), mode: 0o644, content: await readFile(cache) }]
  } catch (cause) {
    stopIfAborted(signal)
    const text = `The agent does not get through a turn with ${runtime.kind} ${runtime.version} (${runtime.path}).`
    throw new DriverError('runtime_unsuitable', text, { cause })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Every file of the content folder, by path. A link could lead to anything on this machine, so none is followed. */
async function contentEntries(folder: string): Promise<readonly TarEntry[]> {
  const found = await stat(folder).catch(() => undefined)
  if (!found?.isDirectory()) {
    const problem = found === undefined ? 'does not exist' : 'is no folder'
    throw new DriverError('options_invalid', `The content folder ${folder} ${problem}.`)
  }
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const target = (path: string) => `${PI_IMAGE_FILES.content.slice(1)}${path.slice(folder.length)}`
  const listed = entries.map(async (entry): Promise<TarEntry> => {
    const source = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) return { path: `${target(source)}/`, mode: 0o755 }
    if (entry.isFile()) {
      const { size } = await stat(source)
      return { path: target(source), mode: 0o644, content: { file: source, size } }
    }
    const text = `${source} is neither a file nor a directory. Content is copied as it is: put the file itself there.`
    throw new DriverError('options_invalid', text)
  })
  const all = [{ path: `${PI_IMAGE_FILES.content.slice(1)}/`, mode: 0o755 }, ...(await Promise.all(listed))]
  return all.sort((a, b) => (a.path < b.path ? -1 : 1))
}
