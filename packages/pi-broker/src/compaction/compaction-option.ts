import { BrokerError } from '@sandbox/broker/engine'
import type { SandboxCredentialScope } from '@sandbox/credential-scope'
import { type CompactionRequest, type CompactionResult, limits } from '@sandbox/protocol'

/** What a compactor learns about the turn. Each call gets its own frozen copy. */
export interface PiCompactorContext extends SandboxCredentialScope {
  /** When its time is over, in milliseconds on the clock of `performance.now()`. */
  readonly deadline: number
  /** Fires when the turn ends, the worker leaves, or its time is over. */
  readonly signal: AbortSignal
}

/** Sums up a conversation on the host. */
export interface PiCompactor {
  /** `[a-zA-Z0-9@/._-]{1,100}`: stands in the conversation beside the summary. */
  readonly engine: string
  /**
   * Answers the summary, with the `firstKeptEntryId` that it was asked with; or `undefined`: then Pi makes its own,
   * and so it does after a throw or when the time is over. The messages are guest text.
   */
  compact(
    request: CompactionRequest,
    context: PiCompactorContext,
  ): CompactionResult | undefined | Promise<CompactionResult | undefined>
}

/** The `compaction` option: a compactor, and its bounds. */
export interface PiCompaction extends PiCompactor {
  /** Longest time for one summary, 1000 to 600,000 ms; never more than half of what the turn has left. Omitted = 120,000. */
  readonly timeoutMs?: number
  /** Largest request, 1 byte to 96 MiB. Omitted = 32 MiB. */
  readonly maxRequestBytes?: number
}

/** {@link PiCompaction}, checked, with every default filled in. */
export interface ResolvedCompaction {
  readonly engine: string
  readonly compact: PiCompactor['compact']
  readonly timeoutMs: number
  readonly maxRequestBytes: number
}

const ENGINE = /^[a-zA-Z0-9@/._-]{1,100}$/
const USUAL_BYTES = 32 * 1024 * 1024

/**
 * Checks the option (CP-01).
 * @throws BrokerError `options_invalid`, naming the field.
 */
export function readCompaction(option: PiCompaction): ResolvedCompaction {
  if (typeof option !== 'object' || option === null) throw invalid('compaction', 'must be an object')
  const { engine, timeoutMs = 120_000, maxRequestBytes = USUAL_BYTES } = option
  if (typeof engine !== 'string' || !ENGINE.test(engine)) {
    throw invalid('compaction.engine', `must match ${ENGINE.source.slice(1, -1)}`)
  }
  if (typeof option.compact !== 'function') throw invalid('compaction.compact', 'must be a function')
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1000 || timeoutMs > 600_000) {
    throw invalid('compaction.timeoutMs', 'must be a whole number from 1000 to 600000')
  }
  const most = limits.PI_COMPACTION_BYTES
  if (!Number.isSafeInteger(maxRequestBytes) || maxRequestBytes < 1 || maxRequestBytes > most) {
    throw invalid('compaction.maxRequestBytes', `must be a whole number from 1 to ${most}`)
  }
  return {
    engine,
    compact: (request, context) => option.compact(request, context),
    timeoutMs,
    maxRequestBytes,
  }
}

function invalid(field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `${field}: ${problem}`)
}
