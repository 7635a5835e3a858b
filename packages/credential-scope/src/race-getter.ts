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
    let timer: NodeJS.Timeout | undefined
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
    if (signal?.aborted) return onAbort()
    let answer: ReturnType<CredentialGetter>
    try {
      answer = ask(question, control.signal)
      // The usual case: nothing to wait for.
      if (!isPromise(answer)) {
        const answered = read(answer)
        return signal?.aborted ? onAbort() : resolve(answered)
      }
    } catch (cause) {
      return lose('credential_error', 'The credential hook failed.', cause)
    }
    timer = setTimeout(onTimeout, deadlineMs)
    if (signal?.aborted) return onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
    settled(answer).then(
      (answered) => {
        detach()
        resolve(answered)
      },
      (cause: unknown) => lose('credential_error', 'The credential hook failed.', cause),
    )
  })
}

function ask({ getter, scope, note, rejected }: Question, signal: AbortSignal): ReturnType<CredentialGetter> {
  const request: CredentialRequest = rejected === undefined ? { signal } : { signal, rejected }
  return askWithNote(getter, scope, request, note)
}

function isPromise(answer: unknown): boolean {
  return typeof (answer as { then?: unknown } | null | undefined)?.then === 'function'
}

async function settled(answer: unknown): Promise<Answered> {
  return read(await answer)
}

/** Throws what foreign code throws. */
function read(answer: unknown): Answered {
  if (typeof answer !== 'object' || answer === null) return { token: answer, origin: undefined }
  const { token, origin } = answer as { token?: unknown; origin?: unknown }
  return { token, origin }
}
