import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { redact } from '@sandbox/credential-scope'
import { buildImage, createProcessDriver } from '@sandbox/docker-worker'
import type { DriverInstall } from '@sandbox/roundtable-plugin'
import type { DriverPlace } from './choose-driver.ts'

/** What {@link prepareDriver} needs. */
export interface PrepareOptions {
  readonly guest: 'sealed' | 'pi'
  /** An image to use as it is; left out, one is built. */
  readonly image?: string | undefined
  /** Replaces the sealed guest program. For tests that do not trust it. */
  readonly guestBundle?: string | undefined
  /** The operator's content folder, for a Pi image that is built. */
  readonly piContent?: string | undefined
  readonly log: (line: string) => void
  readonly signal?: AbortSignal | undefined
}

/** Tags of what the bot builds; an operator's own `sandbox-worker:latest` is left alone. */
const TAGS = { sealed: 'sandbox-worker:demo', pi: 'sandbox-pi-worker:demo' } as const

/**
 * What a plugin is told about its driver; the image is built first when there is none.
 *
 * @throws DriverError when the image cannot be built.
 */
export async function prepareDriver(place: DriverPlace, options: PrepareOptions) {
  const { guest, guestBundle, piContent, image } = options
  if (place.kind === 'process') {
    if (guest === 'pi') {
      return { driver: 'process' as const, ...(piContent === undefined ? {} : { content: piContent }) }
    }
    if (guestBundle === undefined) return { driver: 'process' as const }
    const driver = ({ runRoot, user }: DriverInstall) =>
      createProcessDriver({ runRoot, user, bundle: guestBundle, scrub: redact })
    return { driver }
  }
  const { engineSocket } = place
  return { driver: 'docker' as const, engineSocket, image: image ?? (await build(engineSocket, options)) }
}

async function build(engineSocket: string, options: PrepareOptions): Promise<string> {
  const { guest, guestBundle, piContent, log, signal } = options
  const own = guestBundle === undefined ? piContent : readFileSync(guestBundle)
  const built = await buildImage({
    tag: own === undefined ? TAGS[guest] : `${TAGS[guest]}-${digest(own)}`,
    engineSocket,
    onProgress: log,
    ...(guest === 'pi' ? { guest, ...(piContent === undefined ? {} : { content: piContent }) } : {}),
    ...(guestBundle === undefined ? {} : { bundle: guestBundle }),
    ...(signal === undefined ? {} : { signal }),
  })
  return built.id
}

function digest(of: string | Buffer): string {
  return createHash('sha256').update(of).digest('hex').slice(0, 12)
}
