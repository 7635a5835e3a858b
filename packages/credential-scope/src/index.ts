export { type CachedOptions, cached } from './cached.ts'
export type { CredentialAnswer, CredentialGetter, CredentialRequest } from './credential-source.ts'
export { CredentialError, type CredentialErrorCode } from './errors.ts'
export { forOrigin } from './for-origin.ts'
export {
  byChannel,
  byChannelAndSpeaker,
  byPattern,
  bySpeaker,
  denyUnless,
  firstOf,
  type PickerEntry,
  type PickerTable,
} from './pickers.ts'
export { type PlaceholderKind, placeholderFor } from './placeholder.ts'
export type { CredentialReceipt } from './receipt.ts'
export { redact } from './redact.ts'
export {
  type RefreshingOptions,
  type RefreshOutcome,
  refreshingOAuth,
  type TokenPair,
  type TokenStore,
} from './refreshing.ts'
export {
  type CredentialExplanation,
  explain,
  type ResolveOptions,
  resolveCredential,
} from './resolve-credential.ts'
export { type SandboxCredentialScope, type SandboxSpeaker, snapshotScope } from './scope.ts'
export { type AuthSlot, fingerprintOf, Secret } from './secret.ts'
export { createSecretMatcher, type SecretMatcher } from './secret-matcher.ts'
export type { SecretStream } from './secret-stream.ts'
export { type WithCredentialOptions, withCredential } from './with-credential.ts'
