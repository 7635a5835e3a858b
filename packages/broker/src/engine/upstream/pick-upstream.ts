import {
  type CredentialGetter,
  forOrigin,
  type SandboxCredentialScope,
  snapshotScope,
} from '@sandbox/credential-scope'
import { linkCallSignal, raceSignal } from '../call/call-signal.ts'
import { CallRefusal } from '../call/refusal.ts'
import type { AdmittedCall } from '../call/route.ts'

const PICKER_MS = 10_000

/**
 * A hook of the host that picks something for a scope; `undefined` = as the options say. Asked before every call, with
 * a frozen copy of the scope; it must answer within 10 s. A throw fails the call, and its text never reaches the guest.
 */
export type ScopePicker<Choice> = (
  scope: SandboxCredentialScope,
  options: { readonly signal: AbortSignal },
) => Choice | undefined | Promise<Choice | undefined>

/** Which upstreams there are for the calls of a broker. */
export interface UpstreamPicking<Choice, Upstream> {
  /** What the broker's own options name. */
  readonly home: Upstream
  /** `undefined` = every scope's calls go to `home`. */
  readonly picker: ScopePicker<Choice> | undefined
  /** Checks a choice. A throw fails the call. */
  read(choice: Choice): Upstream
}

/**
 * The upstream of a call's scope.
 * @throws CallRefusal `endpoint_invalid` when the picker fails, is too slow, or picks what options would refuse.
 * Rejects with the signal's reason when that fires.
 */
export async function pickUpstream<Choice, Upstream>(
  { picker, home, read }: UpstreamPicking<Choice, Upstream>,
  call: Pick<AdmittedCall, 'turn' | 'signal'>,
): Promise<Upstream> {
  if (picker === undefined) return home
  const { signal, detach } = linkCallSignal({ guest: call.signal, limitMs: PICKER_MS })
  try {
    const choice = await raceSignal(pick(picker, call, signal), signal)
    return choice === undefined ? home : read(choice)
  } catch (cause) {
    call.signal.throwIfAborted()
    throw new CallRefusal('endpoint_invalid', { cause })
  } finally {
    detach()
  }
}

/** Also turns what the picker throws at once into a rejection. */
async function pick<Choice>(
  picker: ScopePicker<Choice>,
  { turn }: Pick<AdmittedCall, 'turn'>,
  signal: AbortSignal,
): Promise<Choice | undefined> {
  return await picker(snapshotScope(turn.scope), { signal })
}

/**
 * The getter for a credential that is spent at `url` (decision 16): one that does not say which origin it is for is for
 * `origin`, the broker's own upstream's, and goes nowhere else.
 */
export function getterFor(getter: CredentialGetter, origin: string, url: URL): CredentialGetter {
  return url.origin === origin ? getter : forOrigin(origin, getter)
}
