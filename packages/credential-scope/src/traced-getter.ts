import type { CredentialAnswer, CredentialGetter, CredentialRequest } from './credential-source.ts'
import type { SandboxCredentialScope } from './scope.ts'

/** What a getter notes about its choice while it chooses; kept when it throws. Never holds a credential. */
export interface ChoiceNote {
  /** The rules that chose, the outer one first. */
  readonly rules: string[]
  /** Where the credential is kept, such as `env:TEAM_KEY`. */
  source?: string
}

/** A getter that notes what it does. */
export type NotedGetter = (
  scope: SandboxCredentialScope,
  request: CredentialRequest | undefined,
  note: ChoiceNote,
) => CredentialAnswer | Promise<CredentialAnswer>

const noted = Symbol.for('@sandbox/credential-scope.noted')

/** Makes a plain getter out of one that takes notes; {@link askWithNote} finds the way back. */
export function notedGetter(ask: NotedGetter): CredentialGetter {
  const getter: CredentialGetter = (scope, request) => ask(scope, request, { rules: [] })
  return Object.defineProperty(getter, noted, { value: ask })
}

/** Asks any getter; one of ours writes into `note`, of another nothing is known. */
export function askWithNote(
  getter: CredentialGetter,
  scope: SandboxCredentialScope,
  request: CredentialRequest | undefined,
  note: ChoiceNote,
): CredentialAnswer | Promise<CredentialAnswer> {
  const ask = (getter as { [noted]?: NotedGetter })[noted]
  return ask === undefined ? getter(scope, request) : ask(scope, request, note)
}

/** A credential that does not depend on the scope. */
export function namedSource(
  source: string,
  read: (request: CredentialRequest | undefined) => CredentialAnswer | Promise<CredentialAnswer>,
): CredentialGetter {
  return notedGetter((_scope, request, note) => {
    note.source = source
    return read(request)
  })
}
