import type { SandboxCredentialScope } from '@sandbox/credential-scope'
import type { CompactionReport } from '@sandbox/protocol'

/** Why a host's compactor did not answer, and Pi made its own summary (CP-06). */
export type CompactionFallback =
  | 'no_compactor'
  | 'already_running'
  | 'turn_limit'
  | 'too_large'
  | 'request_invalid'
  | 'too_many_tokens'
  | 'too_little_time'
  | 'declined'
  | 'result_invalid'
  | 'too_slow'
  | 'aborted'
  | 'failed'

/**
 * What became of a compaction. `answered` and `fallback` are about the host's compactor; `compacted`, `failed` and
 * `bypassed` are what the worker reports, which is guest text. Sizes are in tokens, times in milliseconds.
 */
export type PiCompactionEvent = {
  readonly turnId: string
  readonly scope: SandboxCredentialScope
} & (
  | {
      readonly kind: 'answered'
      readonly engine: string
      readonly tokensBefore: number
      readonly tokensAfter?: number
      readonly durationMs: number
    }
  | {
      readonly kind: 'fallback'
      readonly reason: CompactionFallback
      readonly durationMs: number
      /** What the compactor threw, bounded, and without secrets. */
      readonly detail?: string
    }
  | CompactionReport
)
