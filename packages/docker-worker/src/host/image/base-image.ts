import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DriverError, stopIfAborted } from '../../errors.ts'
import { checkedImage, checkedPath, resolveLimits } from '../../resolve-options.ts'
import { createBoundedOutput } from '../container/bounded-output.ts'
import type { Engine, EngineImage } from '../container/docker-client.ts'
import { startContainer } from '../container/sealed-container.ts'
import { sealedCreateBody, sealedName } from '../container/sealed-spec.ts'
import { readVersion } from './runtime-files.ts'
import { tarStream } from './tar.ts'

/** Where the official images of Node keep it. */
const BASE_RUNTIME = '/usr/local/bin/node'
const VERSION_MS = 30_000
const NOBODY = { uid: 65_534, gid: 65_534 }

/** What {@link planOnBase} needs. */
export interface BaseRequest {
  readonly engine: Engine
  /** Name or id of an image that the engine has. */
  readonly base: string
  /** Path of the runtime in the base. Default `/usr/local/bin/node`. */
  readonly runtime?: string
  readonly bundle: string
  /** The program of prechecks. */
  readonly precheck: string
}

/** An image on an operator's base that was not built yet. */
export interface BasePlan {
  /** Of the base's layers, the recipe, the guest and the runtime's path: equal inputs give equal hashes. */
  readonly contentHash: string
  build(tag: string, signal?: AbortSignal): Promise<void>
}

/** Plans an image on the files of one that the engine has; nothing is pulled. The recipe is the package's `Dockerfile`. */
export async function planOnBase(request: BaseRequest): Promise<BasePlan> {
  const { engine, base } = request
  const runtime = checkedPath('options_invalid', 'runtime', request.runtime ?? BASE_RUNTIME)
  const image = await engine.image(checkedImage('base', base))
  if (!image) {
    const text = `There is no image ${base} on this engine, and none is pulled. Load it with "docker load" or "docker pull".`
    throw new DriverError('image_missing', text)
  }
  const recipe = await readFile(await dockerfile())
  const guest = await readFile(request.bundle)
  const precheck = await readFile(request.precheck)
  const hash = createHash('sha256')
  for (const part of [image.layers.join(), runtime, recipe, guest, precheck]) {
    hash.update(createHash('sha256').update(part).digest())
  }
  const contentHash = hash.digest('hex')
  return {
    contentHash,
    async build(tag, signal) {
      const { kind, version } = await versionIn(engine, image, runtime, signal)
      const context = Readable.from(
        tarStream([
          { path: 'Dockerfile', mode: 0o644, content: recipe },
          { path: 'sealed.js', mode: 0o644, content: guest },
          { path: 'precheck.js', mode: 0o644, content: precheck },
        ]),
        { objectMode: false },
      )
      const args = { BASE: image.id, RUNTIME: runtime, KIND: kind, VERSION: version, CONTENT: contentHash }
      await engine.build(context, { tag, args, ...(signal && { signal }) })
    },
  }
}

/** Beside the built code, or at the top of a checkout of the package. */
async function dockerfile(): Promise<string> {
  for (const place of ['./Dockerfile', '../../../Dockerfile']) {
    const path = await realpath(fileURLToPath(new URL(place, import.meta.url))).catch(() => undefined)
    if (path !== undefined) return path
  }
  throw new DriverError('bundle_missing', 'The Dockerfile of this package is not there: install it anew.')
}

/** Asks the base's runtime for its version, sealed: the base is somebody else's. */
async function versionIn(engine: Engine, image: EngineImage, runtime: string, signal?: AbortSignal) {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'sbx-base-')))
  const [runDir, workspaceDir] = await Promise.all(['run-', 'work-'].map((name) => mkdtemp(join(root, name))))
  const workerId = randomBytes(8).toString('hex')
  const installId = `sandbox-build-${process.geteuid?.() ?? 0}`
  const epoch = `build-${process.pid}`
  const worker = {
    workerId,
    channelHash: '0'.repeat(64),
    epoch,
    runDir: `${runDir}`,
    workspaceDir: `${workspaceDir}`,
  }
  const output = createBoundedOutput()
  try {
    const started = await startContainer({
      engine,
      workerId,
      name: sealedName(installId, workerId),
      body: sealedCreateBody({
        worker,
        installId,
        imageId: image.id,
        runtime: 'node',
        user: NOBODY,
        limits: resolveLimits(),
        program: [runtime, '--version'],
      }),
      output,
      ...(signal && { signal }),
    })
    await Promise.race([
      started.exited,
      pause(VERSION_MS, undefined, { ref: false, ...(signal && { signal }) }),
    ])
      .catch(() => {})
      .finally(() => started.remove())
    stopIfAborted(signal)
    return readVersion(`${runtime} of the base`, output.text())
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}
