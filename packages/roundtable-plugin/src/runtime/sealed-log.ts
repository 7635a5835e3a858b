import type { WarmProblem } from '@sandbox/docker-worker'
import type { ChannelKey, HostLogger } from '../host-contract.ts'
import { describe, type TurnFailure } from './turn-failure.ts'
import type { TurnSnapshot } from './turn-snapshot.ts'

/** What a {@link SealedLog} writes with. */
export interface SealedLogParts {
  readonly logger?: HostLogger
  /** Takes secrets out of a text. */
  scrub(text: string): string
}

/** What the log is told of turns and workers. Guest text goes into warnings only: error lines may be posted where people read. */
export class SealedLog {
  readonly #parts: SealedLogParts

  constructor(parts: SealedLogParts) {
    this.#parts = parts
  }

  /** A turn has no answer. `cause` must be scrubbed; `output` is what its worker wrote. */
  failed({ channel, turnId }: TurnSnapshot, failure: TurnFailure, cause: string, output: string): void {
    const { logger, scrub } = this.#parts
    const { category } = failure
    const fields = { channel, turnId, category, cause }
    const ours = category === 'container' || category === 'broker' || category === 'host'
    if (category === 'stopped') logger?.info(fields, 'turn stopped')
    else if (ours) logger?.error(fields, 'turn failed')
    else logger?.warn(fields, 'turn failed')
    const detail = failure.detail === undefined ? {} : { detail: scrub(failure.detail) }
    if (output !== '' || failure.detail !== undefined) {
      logger?.warn({ channel, turnId, ...detail, output }, 'what the worker said')
    }
  }

  /** A worker set files aside that it could not read. */
  quarantined(channel: ChannelKey, files: readonly string[] | undefined): void {
    if (files !== undefined) this.#parts.logger?.warn({ channel, files }, 'workspace files were set aside')
  }

  /** A workspace takes more than it may. */
  full(channel: ChannelKey, cause: string): void {
    this.#parts.logger?.warn({ channel, cause }, 'a workspace is full: its channel gets no turn')
  }

  /** A spare worker was of no use. No turn notices. */
  spare({ channel, what, failures, retryMs, error }: WarmProblem): void {
    const { logger, scrub } = this.#parts
    const cause = scrub(describe(error))
    const fields = { channel, what, failures, cause, ...(retryMs === undefined ? {} : { retryMs }) }
    if (what === 'outdated') logger?.info(fields, 'the image changed: a waiting worker was replaced')
    else logger?.warn(fields, 'a worker that waited for a turn was of no use')
  }

  /** Something of a turn could not be removed. */
  leftover(channel: ChannelKey, problems: readonly unknown[]): void {
    const causes = problems.map((problem) => this.#parts.scrub(describe(problem)))
    this.#parts.logger?.error({ channel, causes }, 'a worker or its directory could not be removed')
  }

  /** What earlier turns left was removed. */
  swept(workers: readonly string[], directories: readonly string[]): void {
    if (workers.length + directories.length === 0) return
    this.#parts.logger?.warn({ workers, directories }, 'removed what was left of earlier turns')
  }

  /** It could not be looked for. */
  sweepFailed(error: unknown): void {
    const cause = this.#parts.scrub(describe(error))
    this.#parts.logger?.warn({ cause }, 'looking for leftovers failed')
  }
}
