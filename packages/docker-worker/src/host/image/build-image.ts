import { Readable } from 'node:stream'
import { DriverError, stopIfAborted } from '../../errors.ts'
import type { BuildImageOptions, BuiltImage } from '../../options.ts'
import {
  checkedFunction,
  checkedGuest,
  checkedImage,
  checkedObject,
  checkedPath,
  checkedProgram,
  checkedSocket,
} from '../../resolve-options.ts'
import { connectEngine, type Engine } from '../container/docker-client.ts'
import { planOnBase } from './base-image.ts'
import { guestBundle, guestFile, requireBundle } from './guest-bundle.ts'
import { CONTENT_LABEL, type ImagePlan, planImage } from './image-archive.ts'
import { piGuest } from './pi-guest.ts'
import { removeReplaced } from './replaced-image.ts'
import { findRuntime } from './runtime-files.ts'
import { sealedGuest } from './sealed-guest.ts'

/** The tag that everything of ours uses when none is given. */
export const DEFAULT_TAG = 'sandbox-worker:latest'

/** The tag of a Pi image when none is given. */
export const DEFAULT_PI_TAG = 'sandbox-pi-worker:latest'

/**
 * Builds the worker image from the runtime that runs now and loads it into the engine, without any registry. Equal
 * inputs give an equal `contentHash`; when the tag already leads to that content, nothing is sent and `built` is
 * false. An image of ours that the tag led to before is deleted when nothing uses it. Throws `DriverError`:
 * `options_invalid`, `runtime_unsuitable`, `bundle_missing`, `image_missing` for a base, `aborted`, or an engine's.
 */
export async function buildImage(options: BuildImageOptions = {}): Promise<BuiltImage> {
  checkedObject('options', options)
  const { onProgress = () => {}, signal, content } = options
  const guest = checkedGuest(options.guest)
  if (guest === 'precheck') {
    throw new DriverError(
      'options_invalid',
      'guest has to be "sealed" or "pi": prechecks are in the sealed image.',
    )
  }
  const pi = guest === 'pi'
  checkedFunction('onProgress', options.onProgress)
  checkedProgram('runtime', options.runtime)
  checkedProgram('bundle', options.bundle)
  if (content !== undefined) checkedPath('options_invalid', 'content', content)
  if (content !== undefined && !pi) {
    throw new DriverError('options_invalid', 'content is for guest "pi" only.')
  }
  if (options.base !== undefined && pi) {
    throw new DriverError('options_invalid', 'base is for guest "sealed" only.')
  }
  if (options.base !== undefined) checkedImage('base', options.base)
  const { tag: name = pi ? DEFAULT_PI_TAG : DEFAULT_TAG } = options
  const tag = withVersion(checkedImage('tag', name))
  const socket = checkedSocket(options.engineSocket)
  stopIfAborted(signal)
  const engine = await connectEngine(socket)
  const plan =
    options.base === undefined
      ? await planOwn(options, engine, onProgress)
      : await planBased(options, engine, options.base)
  const size = plan.sizeBytes === undefined ? '' : `, ${Math.round(plan.sizeBytes / 2 ** 20)} MiB`
  onProgress(`content  ${plan.contentHash.slice(0, 16)}${size}`)
  stopIfAborted(signal)
  const there = await engine.image(tag)
  if (there?.labels[CONTENT_LABEL] === plan.contentHash) {
    onProgress(`image    ${tag} is up to date`)
    return { id: there.id, tag, contentHash: plan.contentHash, built: false }
  }
  onProgress(`loading  ${tag}`)
  stopIfAborted(signal)
  await plan.send(tag)
  const image = await engine.image(tag)
  if (image?.labels[CONTENT_LABEL] !== plan.contentHash) {
    throw new DriverError('engine_failed', `The engine took the image, but ${tag} does not lead to it.`)
  }
  onProgress(`image    ${tag} is ${image.id.slice(0, 19)}`)
  const before = await removeReplaced(engine, there, image.id)
  if (before !== undefined) onProgress(before)
  return { id: image.id, tag, contentHash: plan.contentHash, built: true }
}

/** What is to be sent to the engine, of either kind. */
interface Plan {
  readonly contentHash: string
  readonly sizeBytes?: number
  send(tag: string): Promise<void>
}

async function planOwn(
  { runtime: path = process.execPath, guest: kind, bundle, content, signal }: BuildImageOptions,
  engine: Engine,
  onProgress: (line: string) => void,
): Promise<Plan> {
  const runtime = await findRuntime(path)
  const guest =
    kind === 'pi'
      ? await piGuest({ runtime, ...given({ bundle, content, signal }) })
      : await sealedGuest(await requireBundle(bundle ?? guestBundle()))
  onProgress(`runtime  ${runtime.kind} ${runtime.version} (${runtime.libraries.length} libraries)`)
  const plan = await planImage(runtime, guest)
  return { ...plan, send: (tag) => load(engine, tag, plan, signal) }
}

async function planBased(
  { runtime, bundle, signal }: BuildImageOptions,
  engine: Engine,
  base: string,
): Promise<Plan> {
  const program = await requireBundle(bundle ?? guestBundle())
  const precheck = await requireBundle(guestFile('precheck.js'))
  const plan = await planOnBase({ engine, base, bundle: program, precheck, ...given({ runtime }) })
  return { ...plan, send: (tag) => plan.build(tag, signal) }
}

async function load(
  engine: Engine,
  tag: string,
  plan: ImagePlan,
  signal: AbortSignal | undefined,
): Promise<void> {
  const stop = () => archive.destroy(new DriverError('aborted', 'The build was called off.'))
  const archive = Readable.from(plan.archive(tag), { objectMode: false })
  signal?.addEventListener('abort', stop, { once: true })
  try {
    await engine.load(archive)
  } catch (error) {
    stopIfAborted(signal)
    throw error
  } finally {
    signal?.removeEventListener('abort', stop)
    archive.destroy()
  }
}

/** The fields that have a value. */
function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Name in keyof Fields]?: NonNullable<Fields[Name]> }
}

/** What engines take: a registry's host, lower-case names, and a version, of which only the host is not lower-case. */
const TAG =
  /^(?:[a-zA-Z0-9.-]+(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::\w[\w.-]{0,127})?$/

/** A name without a version means `latest`, for engines too. */
function withVersion(tag: string): string {
  if (tag.includes('@')) throw new DriverError('options_invalid', 'tag has to be a name, not a digest.')
  if (!TAG.test(tag)) {
    const text = 'tag has to be a name in lower case, with at most one version: NAME or NAME:VERSION.'
    throw new DriverError('options_invalid', text)
  }
  return /:[^/]+$/.test(tag) ? tag : `${tag}:latest`
}
