import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { PROTOCOL_LABEL, PROTOCOL_VERSION, RUN_DIR, WORKSPACE_DIR } from '@sandbox/protocol'
import { IMAGE_FILES } from '../container/sealed-spec.ts'
import type { Runtime } from './runtime-files.ts'
import { type TarEntry, tarBytes, tarHead, tarStream } from './tar.ts'

/** SHA-256 of everything in the image. Image ids depend on the engine's store, this does not. */
export const CONTENT_LABEL = 'sandbox.content'

/** `node` or `bun`. */
export const RUNTIME_LABEL = 'sandbox.runtime'

/** The label of an image that holds another guest than the sealed one: `pi`. */
export const GUEST_LABEL = 'sandbox.guest'

/** The label of an image that also holds the program of prechecks. */
export const PRECHECK_LABEL = 'sandbox.precheck'

/** What an image holds besides its runtime. */
export interface ImageGuest {
  readonly kind: 'sealed' | 'pi'
  /** Path of the program that the container starts. */
  readonly entry: string
  /** The layers above the runtime, from the bottom up. */
  readonly layers: readonly (readonly TarEntry[])[]
  /**
   * Makes the uppermost layer when the image is sent. It follows from the others, so it is not part of the content
   * hash: its bytes may differ from run to run.
   */
  derived?(): Promise<readonly TarEntry[]>
}

/** An image that has not been sent yet. */
export interface ImagePlan {
  readonly contentHash: string
  readonly sizeBytes: number
  /** Writes the docker-archive: the layers, the configuration, the manifest. */
  archive(tag: string): AsyncGenerator<Uint8Array>
}

/** Mount points that the engine would otherwise make, and a `/tmp` for everybody: a tmpfs takes its mode from here. */
const DIRECTORIES = ['dev', 'etc', 'proc', 'run', 'sandbox', 'sbin', 'sys']
const FILES = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf', 'sbin/docker-init']

/**
 * Plans an image: the runtime with its libraries, then the layers of the guest. Reads and hashes every file. Equal files
 * give an equal plan. Nothing else is in it: no shell, no package manager, no certificates.
 */
export async function planImage(runtime: Runtime, guest: ImageGuest): Promise<ImagePlan> {
  const layers: Layer[] = []
  for (const entries of [await runtimeEntries(runtime), ...guest.layers]) {
    layers.push(await planLayer(entries))
  }
  const labels = {
    [PROTOCOL_LABEL]: String(PROTOCOL_VERSION),
    [RUNTIME_LABEL]: runtime.kind,
    'sandbox.runtime.version': runtime.version,
    ...(guest.kind === 'sealed' ? { [PRECHECK_LABEL]: '1' } : { [GUEST_LABEL]: guest.kind }),
  }
  const config = (all: readonly Layer[], more: Readonly<Record<string, string>>) =>
    JSON.stringify(imageConfig(runtime, guest.entry, all, { ...labels, ...more }))
  const contentHash = createHash('sha256').update(config(layers, {})).digest('hex')
  return {
    contentHash,
    sizeBytes: layers.reduce((sum, { size }) => sum + size, 0),
    async *archive(tag) {
      const derived = guest.derived === undefined ? [] : [await planLayer(await guest.derived())]
      const all = [...layers, ...derived]
      yield* archive(tag, all, Buffer.from(config(all, { [CONTENT_LABEL]: contentHash })))
    },
  }
}

interface Layer {
  readonly entries: readonly TarEntry[]
  readonly size: number
  readonly hash: string
}

async function planLayer(entries: readonly TarEntry[]): Promise<Layer> {
  const hash = createHash('sha256')
  for await (const chunk of tarStream(entries)) hash.update(chunk)
  return { entries, size: tarBytes(entries), hash: hash.digest('hex') }
}

async function runtimeEntries(runtime: Runtime): Promise<readonly TarEntry[]> {
  const files = [...runtime.libraries, { target: IMAGE_FILES.runtime, source: runtime.path }]
  const entries = files.map(async ({ target, source }) => {
    const { size } = await stat(source)
    return { path: target.slice(1), mode: 0o755, content: { file: source, size } }
  })
  const mountPoints = [RUN_DIR, WORKSPACE_DIR].map((path) => path.slice(1))
  const directories = new Set([...DIRECTORIES, ...mountPoints])
  for (const { target } of files) for (const parent of parents(target.slice(1))) directories.add(parent)
  return [
    ...[...directories].sort().map((path) => ({ path: `${path}/`, mode: 0o755 })),
    { path: 'tmp/', mode: 0o1777 },
    ...FILES.map((path) => ({ path, mode: 0o755, content: Buffer.alloc(0) })),
    ...(await Promise.all(entries)),
  ]
}

function parents(path: string): string[] {
  const parent = dirname(path)
  return parent === '.' ? [] : [...parents(parent), parent]
}

/** @see https://github.com/moby/docker-image-spec the image configuration. */
function imageConfig(
  runtime: Runtime,
  entry: string,
  layers: readonly Layer[],
  labels: Readonly<Record<string, string>>,
) {
  const created = '1970-01-01T00:00:00Z'
  return {
    architecture: runtime.architecture,
    os: 'linux',
    created,
    config: {
      Entrypoint: [IMAGE_FILES.runtime, entry],
      Labels: labels,
      // Nobody, should somebody run it without the driver.
      User: '65534:65534',
      WorkingDir: '/',
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ hash }) => `sha256:${hash}`) },
    history: [
      { created, created_by: `${runtime.kind} ${runtime.version}` },
      ...layers.slice(1).map(() => ({ created, created_by: 'guest' })),
    ],
  }
}

async function* archive(tag: string, layers: readonly Layer[], config: Buffer): AsyncGenerator<Uint8Array> {
  for (const layer of layers) {
    yield tarHead({ path: `${layer.hash}.tar`, mode: 0o644 }, layer.size)
    yield* tarStream(layer.entries)
  }
  const configName = `${createHash('sha256').update(config).digest('hex')}.json`
  const manifest = [{ Config: configName, RepoTags: [tag], Layers: layers.map(({ hash }) => `${hash}.tar`) }]
  yield* tarStream([
    { path: configName, mode: 0o644, content: config },
    { path: 'manifest.json', mode: 0o644, content: Buffer.from(JSON.stringify(manifest)) },
  ])
}
