import { setTimeout as pause } from 'node:timers/promises'
import { DriverError } from '../../errors.ts'
import type { Engine } from './docker-client.ts'

const ATTEMPTS = 3
/** How long somebody else's removal is waited for. */
const BUSY_MS = 5_000

/**
 * Kills and removes one container by id, in up to three tries. Resolves when the engine says that it is gone; rejects
 * with `remove_failed` when it may still run. Decides by status codes, never by an engine's texts.
 */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  let failure: unknown
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      if ((await engine.remove(id)) === 'gone' || (await goneSoon(engine, id))) return
      failure = new DriverError('engine_failed', 'Another removal is under way and does not end.')
    } catch (error) {
      failure = error
    }
    if (attempt < ATTEMPTS) await pause(100 * attempt)
  }
  const reason = failure instanceof Error ? failure.message : String(failure)
  throw new DriverError(
    'remove_failed',
    `Container ${id.slice(0, 12)} could not be removed and may still run. ${reason} ` +
      `Look at it with "docker inspect ${id.slice(0, 12)}"; the next sweep tries again.`,
    { cause: failure },
  )
}

async function goneSoon(engine: Engine, id: string): Promise<boolean> {
  const end = performance.now() + BUSY_MS
  while ((await engine.state(id)) !== undefined) {
    if (performance.now() > end) return false
    await pause(25)
  }
  return true
}

/**
 * Removes every container that carries this install's label and belongs to no worker in `live`, all at once. Other
 * installs' containers are never touched. `live` is asked when the engine has made its list: a worker may start
 * meanwhile. Returns the ids of the removed workers; rejects after every one was tried.
 */
export async function sweepInstall(
  engine: Engine,
  installId: string,
  live: Pick<ReadonlySet<string>, 'has'>,
): Promise<readonly string[]> {
  const left = (await engine.list(installId)).filter(({ workerId }) => !live.has(workerId))
  const outcomes = await Promise.allSettled(left.map(({ id }) => removeContainer(engine, id)))
  const failed = outcomes.find((outcome) => outcome.status === 'rejected')
  if (failed) throw failed.reason
  return left.map(({ workerId }) => workerId)
}
