import { expectTypeOf } from 'vitest'
import {
  type AuthSlot,
  byChannel,
  byChannelAndSpeaker,
  CredentialError,
  type CredentialErrorCode,
  type CredentialGetter,
  type CredentialReceipt,
  createSecretMatcher,
  firstOf,
  resolveCredential,
  type SandboxCredentialScope,
  Secret,
  withCredential,
} from './index.ts'

// CS-07 CS-08: what may stand in place of a getter.
expectTypeOf<() => string>().toExtend<CredentialGetter>()
expectTypeOf<() => undefined>().toExtend<CredentialGetter>()
expectTypeOf<() => Promise<string | null>>().toExtend<CredentialGetter>()
expectTypeOf<
  (scope: SandboxCredentialScope) => { token: string; origin: string }
>().toExtend<CredentialGetter>()
expectTypeOf<(scope: { channel: string }) => string>().toExtend<CredentialGetter>()
expectTypeOf<() => number>().not.toExtend<CredentialGetter>()
expectTypeOf<(scope: { principal: string }) => string>().not.toExtend<CredentialGetter>()

// CS-01 CS-05: the scope has these keys and no other, and nothing in it can be written.
expectTypeOf<keyof SandboxCredentialScope>().toEqualTypeOf<'channel' | 'speaker'>()
expectTypeOf<SandboxCredentialScope['speaker']>().toEqualTypeOf<{
  readonly id: string
  readonly name: string
  readonly principalId?: string
}>()

// The one way out of a secret is its slot: nothing that it has is the credential.
expectTypeOf<
  Exclude<keyof Secret, 'origin' | 'fingerprint' | 'applyTo' | 'toString' | 'toJSON' | symbol>
>().toBeNever()
expectTypeOf(Secret.prototype.applyTo).parameters.toEqualTypeOf<[Record<string, string>, URL, AuthSlot]>()
expectTypeOf<{ kind: 'cookie' }>().not.toExtend<AuthSlot>()

expectTypeOf(resolveCredential).returns.resolves.toEqualTypeOf<Secret>()
expectTypeOf(createSecretMatcher).parameter(0).toEqualTypeOf<Iterable<Secret>>()
expectTypeOf(byChannel({ a: 'x', b: () => undefined })).toEqualTypeOf<CredentialGetter>()
expectTypeOf(byChannelAndSpeaker(new Map([['a', { b: 'x' }]]))).toEqualTypeOf<CredentialGetter>()
expectTypeOf(firstOf(async () => 'x')).toEqualTypeOf<CredentialGetter>()
// @ts-expect-error -- a table leads to getters or credentials
byChannel({ a: 7 })

expectTypeOf(
  withCredential({
    getter: () => 'x',
    scope: { channel: 'a', speaker: { id: 'b', name: 'c' } },
    origin: 'https://a.example',
    spend: async () => 7,
    rejectedStatus: (answer) => (answer === 7 ? 401 : undefined),
  }),
).resolves.toEqualTypeOf<number>()

const caught: unknown = undefined
if (CredentialError.isInstance(caught)) expectTypeOf(caught.code).toEqualTypeOf<CredentialErrorCode>()
expectTypeOf<CredentialReceipt['outcome']>().toEqualTypeOf<'ok' | CredentialErrorCode>()
