import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type Docker from 'dockerode'
import { DriverError } from '../../errors.ts'
import type { EngineAddress } from './engine-stream.ts'
import { createOnPodman } from './podman-body.ts'
import { LABELS, type SealedCreateBody } from './sealed-spec.ts'

/** The API version whose calls we use; an engine that no longer has it is asked for its oldest. */
const API_VERSION = 1.41

/** How long one call of the engine may take. */
const CALL_MS = 15_000
/** Creating and starting wait for disks. */
const START_MS = 30_000
const LOAD_MS = 300_000

/** Who made the engine. Podman speaks Docker's API, and adds to every container what Docker does not. */
export type EngineKind = 'docker' | 'podman'

/** What we read of an engine. */
export interface EngineInfo {
  readonly apiVersion: string
  readonly engineVersion: string
  readonly operatingSystem: string
  readonly osType: string
  readonly cgroupDriver: string
  readonly securityOptions: readonly string[]
  /** Names of limits that the engine says it cannot enforce. */
  readonly missingLimits: readonly string[]
  /** Names of the container runtimes that the engine was told of. */
  readonly runtimes: readonly string[]
}

/** What we read of an image. */
export interface EngineImage {
  readonly id: string
  readonly labels: Readonly<Record<string, string>>
  readonly environment: readonly string[]
  readonly volumes: readonly string[]
  /** Names that lead to it. */
  readonly tags: readonly string[]
  /** Hashes of its layers, from the bottom up. */
  readonly layers: readonly string[]
}

/** What a build is told besides its files. */
export interface EngineBuild {
  readonly tag: string
  /** The recipe's `ARG`s. */
  readonly args: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** What we read of a container. */
export interface ContainerState {
  readonly running: boolean
  readonly exitCode: number
  readonly oomKilled: boolean
  /** Of its first process on this machine; 0 when it does not run. */
  readonly pid: number
}

/** What we read of a container in a list. */
export interface ListedContainer {
  readonly id: string
  readonly installId: string
  readonly workerId: string
  readonly channelHash: string
  readonly imageId: string
  /** Of its settings; empty for a container that was created without. */
  readonly bodyHash: string
  /** When it was created, in seconds since 1970 by the engine's clock. */
  readonly createdAt: number
  /** The engine's word: `created`, `running`, `exited`, … */
  readonly state: string
}

/** The dozen engine calls that we need. Every one ends within a bound, and fails with a `DriverError`. */
export interface Engine {
  readonly address: EngineAddress
  readonly kind: EngineKind
  info(): Promise<EngineInfo>
  /** `undefined` when the engine does not have it. */
  image(name: string): Promise<EngineImage | undefined>
  load(archive: Readable): Promise<void>
  /** Builds from an archive with a `Dockerfile`. Nothing is pulled. */
  build(context: Readable, options: EngineBuild): Promise<void>
  /** Deletes an image by id. `in_use` means that a container or another image needs it. */
  removeImage(id: string): Promise<'gone' | 'in_use'>
  /** Returns the new container's id. One that is created after the bound is removed in the background. */
  create(name: string, body: SealedCreateBody): Promise<string>
  start(id: string): Promise<void>
  /** `undefined` when there is no such container. */
  state(id: string): Promise<ContainerState | undefined>
  /** Kills and removes. `busy` means that somebody else is removing it right now. */
  remove(id: string): Promise<'gone' | 'busy'>
  /** Every container of an install, running or not; of all installs when none is given. */
  list(installId?: string): Promise<readonly ListedContainer[]>
}

/** Connects to the engine behind a local socket, and settles the API version. */
export async function connectEngine(socketPath: string): Promise<Engine> {
  await requireSocket(socketPath)
  const found = await bounded('version', CALL_MS, (await docker(socketPath)).version())
  const version = pickVersion(found.ApiVersion, found.MinAPIVersion)
  const podman = found.Components?.some(({ Name }) => Name === 'Podman Engine')
  const address = { socketPath, version: `v${version}` }
  return new DockerodeEngine(address, await docker(socketPath, `v${version}`), podman ? 'podman' : 'docker')
}

/** The status of the engine's answer that a `DriverError` came from. */
export function statusOf(error: unknown): number | undefined {
  const cause = DriverError.isInstance(error) ? error.cause : error
  const status = (cause as { statusCode?: unknown } | undefined)?.statusCode
  return typeof status === 'number' ? status : undefined
}

/** Waits for a call of the engine no longer than its bound, and gives its failure a code. */
export async function bounded<T>(what: string, limitMs: number, call: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(
        new DriverError('engine_unreachable', `The engine did not answer "${what}" within ${limitMs} ms.`),
      )
    }, limitMs)
  })
  try {
    return await Promise.race([call, limit])
  } catch (error) {
    throw translate(what, error)
  } finally {
    clearTimeout(timer)
  }
}

function translate(what: string, error: unknown): DriverError {
  if (DriverError.isInstance(error)) return error
  const status = statusOf(error)
  const text = (error instanceof Error ? error.message : String(error)).trim().slice(0, 300)
  if (status !== undefined) {
    return new DriverError('engine_failed', `The engine answered ${status} to "${what}": ${text}`, {
      cause: error,
    })
  }
  const code = (error as { code?: unknown }).code
  const mend =
    code === 'EACCES'
      ? 'This account may not use the socket: add it to the group that owns it, usually "docker".'
      : 'Is it running?'
  return new DriverError('engine_unreachable', `The engine does not answer "${what}": ${text}. ${mend}`, {
    cause: error,
  })
}

/**
 * Every option is given, so that nothing of the environment (`DOCKER_HOST` and its kin) is used. Loaded on first use:
 * it brings 56 packages with it.
 */
async function docker(socketPath: string, version?: string): Promise<Docker> {
  const { default: Dockerode } = await import('dockerode')
  const nothing = { host: undefined, port: undefined, ca: undefined, cert: undefined, key: undefined }
  const options = { ...nothing, socketPath, protocol: 'http', timeout: undefined, version }
  try {
    return new Dockerode(options as Docker.DockerOptions)
  } catch (error) {
    const text = 'DOCKER_HOST or DOCKER_CERT_PATH in the environment cannot be read: unset them.'
    throw new DriverError('options_invalid', text, { cause: error })
  }
}

async function requireSocket(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    const text = `There is no engine at ${path}. Start Docker, or name its socket (DOCKER_HOST=unix:///…).`
    throw new DriverError('engine_unreachable', text, { cause: error })
  })
  if (!found.isSocket()) throw new DriverError('engine_unreachable', `${path} is not a socket.`)
}

function pickVersion(newest: string, oldest: string | undefined): string {
  const number = (text: string) => Number(text.split('.')[0]) * 1000 + Number(text.split('.')[1])
  const ours = number(String(API_VERSION))
  if (!(number(newest) >= ours)) {
    const text = `The engine speaks API ${newest}; ${API_VERSION} is needed (Docker 20.10 or later).`
    throw new DriverError('engine_unsuitable', text)
  }
  return oldest !== undefined && number(oldest) > ours ? oldest : String(API_VERSION)
}

class DockerodeEngine implements Engine {
  readonly address: EngineAddress
  readonly kind: EngineKind
  readonly #docker: Docker

  constructor(address: EngineAddress, docker: Docker, kind: EngineKind) {
    this.address = address
    this.kind = kind
    this.#docker = docker
  }

  async info(): Promise<EngineInfo> {
    const info = await bounded('info', CALL_MS, this.#docker.info())
    const limits = ['MemoryLimit', 'SwapLimit', 'PidsLimit', 'CpuCfsQuota']
    return {
      apiVersion: this.address.version,
      engineVersion: String(info.ServerVersion),
      operatingSystem: String(info.OperatingSystem),
      osType: String(info.OSType),
      cgroupDriver: String(info.CgroupDriver ?? 'none'),
      securityOptions: Array.isArray(info.SecurityOptions) ? info.SecurityOptions.map(String) : [],
      missingLimits: limits.filter((limit) => info[limit] !== true),
      runtimes: Object.keys(info.Runtimes ?? {}).sort(),
    }
  }

  async image(name: string): Promise<EngineImage | undefined> {
    const found = await orUndefined(bounded('image', CALL_MS, this.#docker.getImage(name).inspect()))
    return (
      found && {
        id: found.Id,
        labels: found.Config?.Labels ?? {},
        environment: found.Config?.Env ?? [],
        volumes: Object.keys(found.Config?.Volumes ?? {}),
        tags: found.RepoTags ?? [],
        layers: found.RootFS?.Layers ?? [],
      }
    )
  }

  async load(archive: Readable): Promise<void> {
    const answer = await bounded('load', LOAD_MS, this.#docker.loadImage(archive, { quiet: true }))
    await readProgress(answer)
  }

  async build(context: Readable, { tag, args, signal }: EngineBuild): Promise<void> {
    const options = {
      t: tag,
      buildargs: { ...args },
      networkmode: 'none',
      forcerm: true,
      version: '1' as const,
    }
    const answer = await bounded('build', LOAD_MS, this.#docker.buildImage(context, options))
    const stop = () => (answer as Readable).destroy(new DriverError('aborted', 'The build was called off.'))
    signal?.addEventListener('abort', stop, { once: true })
    try {
      if (signal?.aborted) stop()
      await bounded('build', LOAD_MS, readProgress(answer))
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }

  async removeImage(id: string): Promise<'gone' | 'in_use'> {
    try {
      await bounded('remove image', CALL_MS, this.#docker.getImage(id).remove())
      return 'gone'
    } catch (error) {
      const status = statusOf(error)
      if (status === 404) return 'gone'
      if (status === 409) return 'in_use'
      throw error
    }
  }

  async create(name: string, body: SealedCreateBody): Promise<string> {
    const create = (sent: SealedCreateBody) =>
      this.#docker.createContainer({ name, ...sent } as Docker.ContainerCreateOptions)
    const created = this.kind === 'podman' ? createOnPodman(body, create) : create(body)
    try {
      return (await bounded('create', START_MS, created)).id
    } catch (error) {
      created.then((late) => this.remove(late.id)).catch(() => {})
      throw error
    }
  }

  async start(id: string): Promise<void> {
    await bounded('start', START_MS, this.#docker.getContainer(id).start())
  }

  async state(id: string): Promise<ContainerState | undefined> {
    const found = await orUndefined(bounded('inspect', CALL_MS, this.#docker.getContainer(id).inspect()))
    return (
      found && {
        running: found.State.Running,
        exitCode: found.State.ExitCode,
        oomKilled: found.State.OOMKilled,
        pid: found.State.Pid,
      }
    )
  }

  async remove(id: string): Promise<'gone' | 'busy'> {
    try {
      await bounded('remove', CALL_MS, this.#docker.getContainer(id).remove({ force: true, v: true }))
      return 'gone'
    } catch (error) {
      const status = statusOf(error)
      if (status === 404) return 'gone'
      if (status === 409) return 'busy'
      throw error
    }
  }

  async list(installId?: string): Promise<readonly ListedContainer[]> {
    const label = installId === undefined ? LABELS.install : `${LABELS.install}=${installId}`
    const call = this.#docker.listContainers({ all: true, filters: { label: [label] } })
    const found = await bounded('list', CALL_MS, call)
    return found
      .map(({ Id, ImageID, Labels, Created, State }) => ({
        id: Id,
        installId: Labels[LABELS.install],
        workerId: Labels[LABELS.worker] ?? '',
        channelHash: Labels[LABELS.channel] ?? '',
        imageId: ImageID,
        bodyHash: Labels[LABELS.body] ?? '',
        createdAt: Created,
        state: State,
      }))
      .filter((one): one is ListedContainer =>
        installId === undefined ? one.installId !== undefined : one.installId === installId,
      )
  }
}

/** The engine tells of a failure within an answer that began well. */
async function readProgress(answer: AsyncIterable<unknown>): Promise<void> {
  let text = ''
  for await (const chunk of answer) text = (text + String(chunk)).slice(-4096)
  const failed = /"error":"(?<why>(?:[^"\\]|\\.)*)"/.exec(text)?.groups?.why
  if (failed !== undefined) {
    throw new DriverError('engine_failed', `The engine refused the image: ${failed.slice(0, 300)}`)
  }
}

async function orUndefined<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (statusOf(error) === 404) return undefined
    throw error
  }
}
