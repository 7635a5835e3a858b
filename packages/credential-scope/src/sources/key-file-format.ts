import { CredentialError } from '../errors.ts'
import type { SandboxCredentialScope } from '../scope.ts'
import { type JsoncPath, readJsonc } from './jsonc.ts'

/** One rule of a key file. */
export interface KeyRule {
  /** Channel key, or the beginning of one and a `*`. */
  readonly channel: string
  /** Speaker id. Omitted = everybody in the channel who has no rule of their own. */
  readonly speaker?: string
  /** Where the credential is: `env:NAME`, `file:PATH`, `command:PROGRAM ARGUMENTS` or `oauth:SERVICE:PATH`. */
  readonly key: string
  /** The only origin that this key may be sent to. Omitted = that of `provider`, else whichever is called. */
  readonly origin?: string
  /** Name of the provider that the key is for, as the host knows it. */
  readonly provider?: string
  /** Name of the model to use with this key. Omitted = as the host says. */
  readonly model?: string
}

/** The rules of one key file, ready for lookups. */
export interface KeyRules {
  readonly size: number
  /** The rule for a scope: one with its speaker first, then whole channel keys before patterns, longest first. */
  find(scope: SandboxCredentialScope): KeyRule | undefined
  values(): Iterable<KeyRule>
  /** Where a rule stands, for people: the file's path and the line. */
  place(rule: KeyRule): string
}

/** What the host knows of the names in a key file. */
export interface KeyNames {
  /** The origin of each provider. Omitted = any name will do, and none binds a key. */
  readonly providers?: Readonly<Record<string, string>> | undefined
  /** Services that `oauth:SERVICE:PATH` may name. */
  readonly logins: readonly string[]
}

/**
 * Reads the text of a key file; `path` is for messages.
 *
 * @throws CredentialError `source_invalid` that names the line, the rule and what is wrong with it.
 */
export function parseKeyRules(text: string, path: string, names: KeyNames): KeyRules {
  const lineOf = (part: JsoncPath) => readJsonc(text).lineOf(part)
  try {
    return indexed(ruleList(text), names, (index) => `${path}:${lineOf(['rules', index])}`)
  } catch (error) {
    if (error instanceof Problem) {
      throw new CredentialError('source_invalid', `${path}:${lineOf(error.part)}: ${error.message}`)
    }
    if (!CredentialError.isInstance(error)) throw error
    throw new CredentialError('source_invalid', `${path}: not JSON, comments aside: ${error.message}`)
  }
}

/** How a rule is named to people: channel and speaker, never the key. */
export function describeRule(rule: Pick<KeyRule, 'channel' | 'speaker'>): string {
  return rule.speaker === undefined
    ? `channel ${rule.channel}`
    : `channel ${rule.channel}, speaker ${rule.speaker}`
}

function indexed(list: readonly unknown[], names: KeyNames, placeOf: (index: number) => string): KeyRules {
  const rules = new Map<string, KeyRule>()
  const indexes = new Map<KeyRule, number>()
  for (const [index, raw] of list.entries()) {
    const rule = checkedRule(raw, index, names)
    const id = ruleId(rule.channel, rule.speaker)
    if (rules.has(id)) throw new Problem(['rules', index], `repeats the rule for ${describeRule(rule)}`)
    rules.set(id, rule)
    indexes.set(rule, index)
  }
  const lengths = patternLengths(rules.values())
  const byChannel = (channel: string, speaker?: string) =>
    rules.get(ruleId(channel, speaker)) ??
    lengths
      .filter((length) => length <= channel.length)
      .map((length) => rules.get(ruleId(`${channel.slice(0, length)}*`, speaker)))
      .find((rule) => rule !== undefined)
  return {
    size: rules.size,
    find: ({ channel, speaker }) => byChannel(channel, speaker.id) ?? byChannel(channel),
    values: () => rules.values(),
    place: (rule) => placeOf(indexes.get(rule) ?? 0),
  }
}

/** Of what stands before the `*` in all patterns, longest first. */
function patternLengths(rules: Iterable<KeyRule>): readonly number[] {
  const lengths = new Set<number>()
  for (const { channel } of rules) if (channel.endsWith('*')) lengths.add(channel.length - 1)
  return [...lengths].sort((a, b) => b - a)
}

function ruleList(text: string): unknown[] {
  const parsed = readJsonc(text).value
  const rules = isObject(parsed) ? parsed.rules : undefined
  if (!isObject(parsed) || !Array.isArray(rules)) throw new Problem([], 'it must be { "rules": [ … ] }')
  refuseUnknown(parsed, ['$schema', 'rules'], [])
  return rules
}

const FIELDS = ['channel', 'speaker', 'key', 'origin', 'provider', 'model'] as const

const KEY = /^(env:[A-Za-z_][A-Za-z0-9_]*|file:[^\0]+|command:[^\0\s][^\0]*|oauth:[a-z][a-z0-9_-]*:[^\0]+)$/

function checkedRule(raw: unknown, index: number, names: KeyNames): KeyRule {
  const where: JsoncPath = ['rules', index]
  if (!isObject(raw)) throw new Problem(where, 'is not an object')
  refuseUnknown(raw, FIELDS, where)
  const refuse = (field: (typeof FIELDS)[number], problem: string) => new Problem([...where, field], problem)
  const { channel, speaker, key, origin, provider, model } = raw
  if (!isName(channel)) throw refuse('channel', NAME)
  if (channel.replace(/\*$/, '').trim() === '' || channel.replace(/\*$/, '').includes('*')) {
    throw refuse('channel', 'has a * at its end only, after the name of a surface: "discord:*"')
  }
  if (typeof key !== 'string' || !KEY.test(key)) {
    throw refuse(
      'key',
      'must be "env:NAME", "file:PATH", "command:PROGRAM …" or "oauth:SERVICE:PATH", not the key itself',
    )
  }
  for (const [field, name] of Object.entries({ speaker, provider, model })) {
    if (name !== undefined && !isName(name)) throw refuse(field as 'speaker', NAME)
  }
  if (origin !== undefined && !isWebUrl(origin)) {
    throw refuse('origin', 'must be an http(s) URL such as https://api.example.com')
  }
  const service = /^oauth:([^:]+):/.exec(key)?.[1]
  if (service !== undefined && !names.logins.includes(service)) {
    throw refuse('key', `names no login service: known are ${names.logins.join(', ')}`)
  }
  const rule = { channel, speaker, key, origin, provider, model } as Record<string, string | undefined>
  const known = Object.entries(rule).filter(([, value]) => value !== undefined)
  return bound(Object.fromEntries(known) as unknown as KeyRule, names, refuse)
}

/** The key of a provider is for that provider's origin and no other. */
function bound(
  rule: KeyRule,
  { providers }: KeyNames,
  refuse: (field: 'origin' | 'provider', problem: string) => Problem,
): KeyRule {
  const { provider, origin } = rule
  if (provider === undefined || providers === undefined) return rule
  const own = Object.hasOwn(providers, provider) ? providers[provider] : undefined
  if (own === undefined) {
    throw refuse('provider', `names no provider: known are ${Object.keys(providers).join(', ') || 'none'}`)
  }
  if (origin !== undefined && new URL(origin).origin !== new URL(own).origin) {
    throw refuse('origin', `is not that of the provider ${provider}: leave it out`)
  }
  return { ...rule, origin: own }
}

function refuseUnknown(value: object, known: readonly string[], where: JsoncPath): void {
  const odd = Object.keys(value).find((key) => !known.includes(key))
  // A field name is not repeated: somebody may have put a key there.
  if (odd !== undefined)
    throw new Problem([...where, odd], `has a field other than ${known.join(', ')}`, where)
}

const NAME = 'must be a non-empty string without control characters'

/** A part of the file that cannot be used; for {@link parseKeyRules}, which knows the line. */
class Problem extends Error {
  readonly part: JsoncPath

  /** `named`: the part to name when it is not the one whose line is told. */
  constructor(part: JsoncPath, problem: string, named = part) {
    const [list, index, field] = named
    const place = index === undefined ? 'the top level' : `${list}[${index}]`
    super(part.length === 0 ? problem : `${place}${field === undefined ? '' : `.${field}`} ${problem}`)
    this.part = part
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isName(value: unknown): value is string {
  // Control characters are in no scope, see snapshotScope.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
  return typeof value === 'string' && value.trim() !== '' && !/[\u0000-\u001f\u007f]/.test(value)
}

function isWebUrl(value: unknown): boolean {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value)
}

function ruleId(channel: string, speaker?: string): string {
  return speaker === undefined ? channel : `${channel}\0${speaker}`
}
