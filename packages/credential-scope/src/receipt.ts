import type { CredentialErrorCode } from './errors.ts'
import type { SandboxCredentialScope } from './scope.ts'
import type { ChoiceNote } from './traced-getter.ts'

/**
 * What happened when a credential was asked for: one per resolution, for an audit trail. It never holds a
 * credential. Its JSON is stable: these fields, in this order, all of them always there; its schema is
 * `receipt.schema.json` in this package. Fields may be added, then `version` goes up.
 */
export interface CredentialReceipt {
  readonly version: 1
  /** When the answer was there, RFC 3339 in UTC with milliseconds. */
  readonly time: string
  readonly channel: string
  readonly speakerId: string
  /** The rules that chose, the outer one first, joined by ` > `. `null` = none did, or the hook is not ours. */
  readonly rule: string | null
  /** Where the credential is kept, such as `env:TEAM_KEY`. `null` = not known. */
  readonly source: string | null
  /** Keyed hash of the credential, comparable within one process. `null` = there was none. */
  readonly fingerprint: string | null
  /** `ok`, or why there was none. */
  readonly outcome: 'ok' | CredentialErrorCode
}

/** Writes a receipt. */
export function makeReceipt(
  scope: SandboxCredentialScope,
  note: ChoiceNote,
  outcome: CredentialReceipt['outcome'],
  fingerprint: string | null,
): CredentialReceipt {
  return Object.freeze({
    version: 1,
    time: new Date().toISOString(),
    channel: scope.channel,
    speakerId: scope.speaker.id,
    rule: note.rules.length === 0 ? null : note.rules.join(' > '),
    source: note.source ?? null,
    fingerprint,
    outcome,
  })
}
