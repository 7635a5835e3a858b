import type { CredentialGetter, Secret } from '@sandbox/credential-scope'
import { spendCredential } from '../call/credential.ts'
import type { AdmittedCall } from '../call/route.ts'
import { retryAfterMs } from './forward.ts'
import { openUpstream, type UpstreamAnswer, type UpstreamCall } from './open-upstream.ts'

/** A request whose credential is yet to be asked for. */
export interface CredentialCall extends Omit<UpstreamCall, 'secret' | 'signal' | 'onStatus'> {
  readonly getter: CredentialGetter
}

/**
 * Asks for the credential of the call's scope and opens the upstream with it. One that is refused there (401, 403)
 * is asked for once more, and only if it then is another one, that one is tried, once (W-07). Notes in the call's
 * record what the upstream answered last.
 * @throws CallRefusal as `spendCredential` and `openUpstream` do. When a second credential cannot be had, the first
 * answer stands.
 */
export async function openWithCredential(
  call: Pick<AdmittedCall, 'turn' | 'signal' | 'record'>,
  { getter, ...request }: CredentialCall,
): Promise<UpstreamAnswer> {
  const { signal, record } = call
  const { origin } = request.url
  const open = async (secret: Secret) => {
    const onStatus = (status: number) => {
      record.upstreamStatus = status
    }
    record.upstreamStatus = undefined
    record.retryAfterMs = undefined
    const answer = await openUpstream({ ...request, secret, signal, onStatus })
    if (answer.status >= 400) record.retryAfterMs = retryAfterMs(answer.headers['retry-after'])
    return answer
  }
  const first = await spendCredential(call, { getter, origin })
  const answer = await open(first)
  const { status } = answer
  if (status !== 401 && status !== 403) return answer
  const rejected = { fingerprint: first.fingerprint, status }
  const second = await spendCredential(call, { getter, origin, rejected }).catch(() => undefined)
  if (second === undefined || second.fingerprint === first.fingerprint) return answer
  answer.cancel()
  return await open(second)
}
