import { CallRefusal } from './refusal.ts'

/** Why a call's signal fired. */
type Cause = 'turn_over' | 'revoked' | 'aborted' | 'timeout'

/** One signal for one call: its turn, its guest and its time together. */
export interface CallSignal {
  readonly signal: AbortSignal
  /** The refusal to answer with once the signal fired; `undefined` before. */
  refusal(): CallRefusal | undefined
  /** Lets go of the turn, the guest and the timer. Idempotent. The signal never fires afterwards. */
  detach(): void
}

/** What a call's signal depends on. */
export interface CallSignalSources {
  /** Fires when the turn ends. */
  readonly turn?: AbortSignal
  /** Fires when the guest left. */
  readonly guest: AbortSignal
  /** In milliseconds; omitted = no limit. */
  readonly limitMs?: number
}

/**
 * Joins the signals of a call. Not `AbortSignal.any`: a turn's signal lives longer than a call, and would keep
 * something of each.
 */
export function linkCallSignal({ turn, guest, limitMs }: CallSignalSources): CallSignal {
  const control = new AbortController()
  let cause: Cause | undefined
  const end = (reason: Cause) => {
    if (cause !== undefined) return
    cause = reason
    detach()
    control.abort(new CallRefusal(reason))
  }
  const onTurn = () => end(causeOf(turn?.reason))
  const onGuest = () => end('aborted')
  const timer = limitMs === undefined ? undefined : setTimeout(() => end('timeout'), limitMs)
  const detach = () => {
    clearTimeout(timer)
    turn?.removeEventListener('abort', onTurn)
    guest.removeEventListener('abort', onGuest)
  }
  turn?.addEventListener('abort', onTurn)
  guest.addEventListener('abort', onGuest)
  if (turn?.aborted) onTurn()
  if (guest.aborted) onGuest()
  return {
    signal: control.signal,
    refusal: () => (cause === undefined ? undefined : new CallRefusal(cause)),
    detach,
  }
}

/** A turn that is over, or one that may make no more calls. */
function causeOf(reason: unknown): Cause {
  return reason instanceof CallRefusal && reason.reason === 'revoked' ? 'revoked' : 'turn_over'
}

/**
 * Waits for a promise, but no longer than the signal: what never settles must not hold a call. Rejects with the
 * signal's reason; a later rejection of the promise is swallowed.
 */
export function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}
