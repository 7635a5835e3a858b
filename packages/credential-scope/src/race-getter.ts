import type { CredentialGetter, CredentialRequest } from './credential-source.ts'
import { CredentialError, type CredentialErrorCode } from './errors.ts'
import type { SandboxCredentialScope } from './scope.ts'
import { askWithNote, type ChoiceNote } from './traced-getter.ts'

/** What an answer holds, before any check of it. */
export interface Answered {
  readonly token: unknown
  readonly origin: unknown
}

/** One question to a getter. */
export interface Question {
  readonly getter: CredentialGetter
  /** A snapshot; the getter gets this very object. */
  readonly scope: SandboxCredentialScope
  readonly note: ChoiceNote
  readonly signal?: AbortSignal | undefined
  readonly deadlineMs?: number | undefined
  readonly rejected?: CredentialRequest['rejected'] | undefined
}

const DEADLINE_MS = 10_000
/** Timers of Node and Bun are 32 bits wide. */
const DEADLINE_MS_MAX = 2_147_483_647

/**
 * Asks a getter and waits no longer than the signal and the deadline allow, even when it never settles; it hears of
 * that through its own signal. What it answers too late is thrown away.
 */
export function raceGetter(question: Question): Promise<Answered> {
  const { signal, deadlineMs = DEADLINE_MS } = question
  if (!(deadlineMs > 0 && deadlineMs <= DEADLINE_MS_MAX)) {
    throw new TypeError(`deadlineMs must be above 0 and at most ${DEADLINE_MS_MAX}`)
  }
  return new Promise((resolve, reject) => {
    const control = new AbortController()
    const detach = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const lose = (code: CredentialErrorCode, message: string, cause?: unknown) => {
      detach()
      const error = new CredentialError(code, message, cause === undefined ? {} : { cause })
      reject(error)
      control.abort(error)
    }
    const onAbort = () =>
      lose('credential_aborted', 'The call ended before its credential was there.', signal?.reason)
    const onTimeout = () => lose('credential_timeout', `No credential came within ${deadlineMs} ms.`)
    const timer = setTimeout(onTimeout, deadlineMs)
    if (signal?.aborted) return onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    ask(question, control.signal).then(
      (answer) => {
        detach()
        resolve(answer)
      },
      (cause: unknown) => lose('credential_error', 'The credential hook failed.', cause),
    )
  })
}

/** Turns all that may throw in foreign code into a rejection. */
async function ask({ getter, scope, note, rejected }: Question, signal: AbortSignal): Promise<Answered> {
  const request: CredentialRequest = rejected === undefined ? { signal } : { signal, rejected }
  const answer: unknown = await askWithNote(getter, scope, request, note)
  if (typeof answer !== 'object' || answer === null) return { token: answer, origin: undefined }
  const { token, origin } = answer as { token?: unknown; origin?: unknown }
  return { token, origin }
}
