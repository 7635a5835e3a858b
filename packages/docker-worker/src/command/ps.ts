import { connectEngine } from '../host/container/docker-client.ts'
import { checkedInstallId } from '../resolve-options.ts'
import { tableLines } from './table.ts'

/** One worker as `ps` shows it. */
export interface WorkerLine {
  readonly id: string
  readonly install: string
  readonly worker: string
  readonly channelHash: string
  /** The image's id, and a hash of the settings of the container: equal ones have equal walls and limits. */
  readonly image: string
  readonly settings: string
  readonly ageMs: number
  readonly state: string
}

/** The workers of one install, or of all; the newest last. */
export async function workersOf(socket: string, install?: string): Promise<readonly WorkerLine[]> {
  const id = install === undefined ? undefined : checkedInstallId(install)
  const listed = await (await connectEngine(socket)).list(id)
  return listed
    .map(({ id, installId, workerId, channelHash, imageId, bodyHash, createdAt, state }) => ({
      id,
      install: installId,
      worker: workerId,
      channelHash,
      image: imageId,
      settings: bodyHash,
      ageMs: Math.max(0, Math.round(Date.now() - createdAt * 1000)),
      state,
    }))
    .sort((one, other) => other.ageMs - one.ageMs)
}

/** The workers as a table. */
export function psLines(workers: readonly WorkerLine[]): readonly string[] {
  return tableLines([
    ['CONTAINER', 'INSTALL', 'WORKER', 'CHANNEL', 'AGE', 'STATE'],
    ...workers.map(({ id, install, worker, channelHash, ageMs, state }) => [
      id.slice(0, 12),
      install,
      worker,
      channelHash.slice(0, 12),
      age(ageMs),
      state,
    ]),
  ])
}

function age(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} d`
}
