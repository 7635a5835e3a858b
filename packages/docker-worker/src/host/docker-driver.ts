import { realpath } from 'node:fs/promises'
import type { Posture } from '@sandbox/protocol'
import { DriverError, stopIfAborted } from '../errors.ts'
import type { DockerDriverOptions } from '../options.ts'
import { checkApart, type ResolvedDockerOptions, resolveDockerOptions } from '../resolve-options.ts'
import { bodyHash, withBodyHash } from './container/body-hash.ts'
import { createBoundedOutput } from './container/bounded-output.ts'
import { connectEngine, type Engine, type EngineKind, statusOf } from './container/docker-client.ts'
import { Leftovers } from './container/leftovers.ts'
import { piCreateBody } from './container/pi-spec.ts'
import { precheckCreateBody } from './container/precheck-spec.ts'
import { sweepInstall } from './container/reconcile.ts'
import { startContainer } from './container/sealed-container.ts'
import { type SealedCreateBody, sealedCreateBody, sealedName } from './container/sealed-spec.ts'
import type { Driver, Worker, WorkerSpec } from './driver.ts'
import {
  buildCommand,
  engineFindings,
  engineRuntimeName,
  imageFindings,
  requireFindings,
  runtimeFinding,
  runtimeOf,
} from './engine-check.ts'
import { hostNamespaces, sealedDifferences } from './self-test.ts'
import { StartedWorkers } from './started-workers.ts'
import { untilAborted } from './warm-pool/waits.ts'

/**
 * Makes a driver that starts every worker in a container of its own, over the Engine API. Throws `options_invalid`
 * naming the field. Talks to the engine only when used: call `check()` first to fail early.
 */
export function createDockerDriver(options: DockerDriverOptions): Driver {
  return new DockerDriver(resolveDockerOptions(options))
}

/** An engine and an image that passed every check. */
interface Ready {
  readonly engine: Engine
  readonly imageId: string
  readonly runtime: 'node' | 'bun'
  /** The engine's name of the container runtime that was asked for. */
  readonly engineRuntime: string | undefined
}

/** For the hash of a create body, which leaves out what a worker's spec says. */
const ANY_WORKER: WorkerSpec = { workerId: '', channelHash: '', epoch: '', runDir: '', workspaceDir: '' }

class DockerDriver implements Driver {
  readonly kind = 'docker'
  readonly isolation = 'container'
  readonly #options: ResolvedDockerOptions
  readonly #hostNamespaces = hostNamespaces()
  readonly #workers = new StartedWorkers()
  readonly #leftovers = new Leftovers()
  #ready: Promise<Ready> | undefined
  #identity: Promise<string> | undefined
  /** As last seen: known before there is any worker to verify. */
  #engineKind: EngineKind = 'docker'

  constructor(options: ResolvedDockerOptions) {
    this.#options = options
  }

  async check(signal?: AbortSignal): Promise<void> {
    this.#workers.stopIfClosed()
    stopIfAborted(signal)
    this.#ready = undefined
    await this.#readyOnce()
    stopIfAborted(signal)
  }

  start(spec: WorkerSpec, signal?: AbortSignal): Promise<Worker> {
    return this.#workers.start(spec, signal, () => this.#startChecked(spec, signal))
  }

  /** Callers at the same moment share one look at the engine. */
  identity(signal?: AbortSignal): Promise<string> {
    this.#identity ??= this.#findIdentity().finally(() => {
      this.#identity = undefined
    })
    return untilAborted(this.#identity, signal)
  }

  verify(posture: Posture): readonly string[] {
    return sealedDifferences(posture, {
      user: this.#options.user,
      limits: this.#options.limits,
      hostNamespaces: this.#hostNamespaces,
      network: this.#options.network,
      workspaceReadOnly: this.#options.guest === 'precheck',
      engine: this.#engineKind,
      ...(this.#options.runtime === undefined ? {} : { runtime: this.#options.runtime }),
    })
  }

  async sweep(live: ReadonlySet<string>): Promise<readonly string[]> {
    this.#workers.stopIfClosed()
    const engine = await connectEngine(this.#options.engineSocket)
    const has = (workerId: string) => live.has(workerId) || this.#workers.starts(workerId)
    return sweepInstall(engine, this.#options.installId, { has })
  }

  /** Waits for starts under way, then removes every worker of this driver that may still run. */
  async [Symbol.asyncDispose](): Promise<void> {
    const outcomes = await Promise.allSettled([this.#workers.close(), this.#leftovers.clearAll()])
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) throw failed.reason
  }

  async #startChecked(spec: WorkerSpec, signal: AbortSignal | undefined): Promise<Worker> {
    const worker = await withRealPaths(spec)
    try {
      return await this.#startOn(await this.#readyOnce(), worker, signal)
    } catch (error) {
      if (!DriverError.isInstance(error) || error.code !== 'image_missing') throw error
      // The image was rebuilt and the checked one pruned: the name may lead to the new one.
      this.#ready = undefined
      return this.#startOn(await this.#readyOnce(), worker, signal)
    }
  }

  async #startOn(ready: Ready, worker: WorkerSpec, signal: AbortSignal | undefined): Promise<Worker> {
    const { installId, scrub } = this.#options
    const { engine } = ready
    await untilAborted(this.#leftovers.clear(worker.channelHash), signal)
    try {
      return await startContainer({
        engine,
        workerId: worker.workerId,
        name: sealedName(installId, worker.workerId),
        body: withBodyHash(this.#bodyOf(ready, worker)),
        output: createBoundedOutput({ scrub }),
        onRemoved: (id) => this.#workers.forget(id),
        onLeft: (id, remove) => this.#leftovers.keep(worker.channelHash, id, remove),
        ...(signal === undefined ? {} : { signal }),
      })
    } catch (error) {
      throw createFailure(error, this.#options)
    }
  }

  #bodyOf(ready: Ready, worker: WorkerSpec): SealedCreateBody {
    const { installId, guest, user, limits, network } = this.#options
    const { imageId, runtime, engineRuntime } = ready
    const own = engineRuntime === undefined ? {} : { engineRuntime }
    const spec = { worker, installId, imageId, runtime, user, limits, ...own }
    if (guest === 'pi') return piCreateBody(spec)
    return guest === 'precheck' ? precheckCreateBody(spec) : sealedCreateBody({ ...spec, network })
  }

  async #findIdentity(): Promise<string> {
    this.#workers.stopIfClosed()
    let ready = await this.#readyOnce()
    const image = await ready.engine.image(this.#options.image)
    if (image?.id !== ready.imageId) {
      // The name leads elsewhere by now: what it leads to is checked as at the start.
      this.#ready = undefined
      ready = await this.#readyOnce()
    }
    return `${ready.imageId} ${bodyHash(this.#bodyOf(ready, ANY_WORKER))}`
  }

  #readyOnce(): Promise<Ready> {
    this.#ready ??= this.#look().catch((error: unknown) => {
      this.#ready = undefined
      throw error
    })
    return this.#ready
  }

  async #look(): Promise<Ready> {
    const ready = await checkEngine(this.#options)
    this.#engineKind = ready.engine.kind
    return ready
  }
}

async function checkEngine(options: ResolvedDockerOptions): Promise<Ready> {
  const engine = await connectEngine(options.engineSocket)
  const info = await engine.info()
  const { runtime: wanted } = options
  requireFindings([...engineFindings(info), ...(wanted === undefined ? [] : [runtimeFinding(info, wanted)])])
  const image = await engine.image(options.image)
  requireFindings(imageFindings(options.image, image, options.guest))
  const runtime = image && runtimeOf(image)
  if (!image || !runtime) throw new DriverError('image_missing', `No image ${options.image}.`)
  const engineRuntime = wanted && engineRuntimeName(info, wanted)
  return { engine, imageId: image.id, runtime, engineRuntime }
}

/** What the engine mounts is what was checked: no link can be put in between. */
async function withRealPaths(spec: WorkerSpec): Promise<WorkerSpec> {
  const real = async (field: 'runDir' | 'workspaceDir') =>
    realpath(spec[field]).catch((cause: unknown) => {
      throw new DriverError('spec_invalid', `spec.${field} does not exist.`, { cause })
    })
  const [runDir, workspaceDir] = await Promise.all([real('runDir'), real('workspaceDir')])
  checkApart(runDir, workspaceDir)
  return { ...spec, runDir, workspaceDir }
}

/** The engine answers 404 to a create when the image is gone, 409 when the name is taken. */
function createFailure(error: unknown, { image, guest }: ResolvedDockerOptions): unknown {
  if (!DriverError.isInstance(error) || error.code !== 'engine_failed') return error
  const status = statusOf(error)
  if (status === 404) {
    const text = `No image ${image}. Make it with "${buildCommand(image, guest)}".`
    return new DriverError('image_missing', text, { cause: error })
  }
  if (status === 409) {
    return new DriverError('start_failed', 'A worker with this workerId exists already.', { cause: error })
  }
  return new DriverError('start_failed', `The worker could not be created. ${error.message}`, {
    cause: error,
  })
}
