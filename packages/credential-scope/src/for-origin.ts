import type { CredentialGetter } from './credential-source.ts'
import type { SandboxCredentialScope } from './scope.ts'
import { askWithNote, notedGetter } from './traced-getter.ts'

/**
 * Binds credentials to an origin: one that does not say which origin it is for is for this one, and goes nowhere else.
 * One that does say keeps its own. `origin` may depend on the scope; `undefined` binds nothing.
 *
 * @throws TypeError for an origin that is no URL, or a getter that is no function.
 */
export function forOrigin(
  origin: string | ((scope: SandboxCredentialScope) => string | undefined),
  getter: CredentialGetter,
): CredentialGetter {
  if (typeof getter !== 'function') throw new TypeError('forOrigin needs a function')
  if (typeof origin === 'string' && !URL.canParse(origin)) throw new TypeError('forOrigin needs a URL')
  const originOf = typeof origin === 'function' ? origin : () => origin
  return notedGetter(async (scope, request, note) => {
    const answer = await askWithNote(getter, scope, request, note)
    if (answer === undefined || answer === null || answer === '') return undefined
    const own = originOf(scope)
    if (own === undefined) return answer
    return typeof answer === 'string' ? { token: answer, origin: own } : { origin: own, ...answer }
  })
}
