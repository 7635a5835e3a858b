import { execFile } from 'node:child_process'
import { realpath } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { DriverError } from '../../errors.ts'
import { type ElfProgram, readElf } from './elf.ts'

const run = promisify(execFile)
const RUN_MS = 20_000

/** A program that can run the guest, as found on this machine. */
export interface Runtime {
  /** Its real path here. */
  readonly path: string
  readonly kind: 'node' | 'bun'
  /** Such as `24.21.0`. */
  readonly version: string
  readonly architecture: ElfProgram['architecture']
  /** Its shared libraries and their loader: path in the image, and real path here. */
  readonly libraries: readonly { readonly target: string; readonly source: string }[]
}

/** Oldest versions that run the guest. */
const OLDEST = { node: [22, 19], bun: [1, 4] } as const

/**
 * Looks at a runtime: what it is, and which libraries it needs. Runs it once with `--version` and lets its own loader
 * list its libraries, both with an empty environment. Throws `runtime_unsuitable`.
 */
export async function findRuntime(path: string): Promise<Runtime> {
  const real = await realpath(path).catch((cause: unknown) => {
    throw new DriverError('runtime_unsuitable', `There is no runtime at ${path}.`, { cause })
  })
  const { architecture, loader } = await readElf(real)
  const { kind, version } = await askVersion(real)
  const libraries = loader === undefined ? [] : await listLibraries(real, loader)
  return { path: real, kind, version, architecture, libraries }
}

async function askVersion(path: string): Promise<Pick<Runtime, 'kind' | 'version'>> {
  return readVersion(path, await output(path, ['--version']))
}

/** Reads what a runtime says with `--version`. Throws `runtime_unsuitable` for one that cannot run the guest. */
export function readVersion(path: string, text: string): Pick<Runtime, 'kind' | 'version'> {
  const found = /^(v?)(\d+)\.(\d+)\.\d+/.exec(text)
  if (!found) {
    throw new DriverError('runtime_unsuitable', `The runtime ${path} is neither Node nor Bun.`)
  }
  const kind = found[1] === 'v' ? 'node' : 'bun'
  const [major, minor] = OLDEST[kind]
  const version = text.trim().replace(/^v/, '')
  if (Number(found[2]) < major || (Number(found[2]) === major && Number(found[3]) < minor)) {
    const mend = `Node ${OLDEST.node.join('.')} or Bun ${OLDEST.bun.join('.')} or later is needed.`
    throw new DriverError('runtime_unsuitable', `The runtime ${path} is ${kind} ${version}. ${mend}`)
  }
  return { kind, version }
}

/** Lines of a loader's `--list`: `name => /path (0x…)`, `/path (0x…)`, or a name without a path for the kernel's own. */
async function listLibraries(path: string, loader: string): Promise<Runtime['libraries']> {
  const text = await output(loader, ['--list', path])
  const missing = /^\s*(\S+) => not found/m.exec(text)
  if (missing) {
    throw new DriverError('runtime_unsuitable', `The runtime ${path} lacks its library ${missing[1]}.`)
  }
  const listed = [...text.matchAll(/^\s*(?:(\S+) => )?(\/\S+) \(0x/gm)].map(([, name, at]) => ({
    name: name ?? '',
    at: at ?? '',
  }))
  const libc = listed.find(({ name }) => /^libc\.|musl/.test(name))
  const targets = new Map([[loader, loader]])
  for (const { name, at } of listed) {
    targets.set(at, at)
    // There is no ld.so.cache in the image: a library from an unusual directory also goes where libc was found.
    if (libc && name !== '' && !name.startsWith('/')) targets.set(join(dirname(libc.at), basename(name)), at)
  }
  const found = [...targets].map(async ([target, at]) => ({ target, source: await realpath(at) }))
  return (await Promise.all(found)).sort((a, b) => (a.target < b.target ? -1 : 1))
}

async function output(path: string, args: string[]): Promise<string> {
  try {
    return (await run(path, args, { env: {}, timeout: RUN_MS, maxBuffer: 2 ** 20 })).stdout
  } catch (cause) {
    const text = `"${basename(path)} ${args.join(' ')}" failed: the runtime does not run on this machine.`
    throw new DriverError('runtime_unsuitable', text, { cause })
  }
}
