import { CredentialError } from '../errors.ts'
import type { SandboxCredentialScope } from '../scope.ts'

/** One rule of a key file. */
export interface KeyRule {
  readonly channel: string
  /** Speaker id. Omitted = everybody in the channel who has no rule of their own. */
  readonly speaker?: string
  /** Where the credential is: `env:NAME` or `file:PATH`. */
  readonly key: string
  /** The only origin that this key may be sent to. Omitted = whichever is called. */
  readonly origin?: string
}

/** The rules of one key file, ready for lookups. */
export interface KeyRules {
  readonly size: number
  /** The rule for a scope: channel and speaker before channel alone. */
  find(scope: SandboxCredentialScope): KeyRule | undefined
  values(): Iterable<KeyRule>
}

/**
 * Reads the JSON text of a key file; `path` is for messages.
 *
 * @throws CredentialError `source_invalid` that names the rule and what is wrong with it.
 */
export function parseKeyRules(text: string, path: string): KeyRules {
  try {
    return indexed(ruleList(text))
  } catch (error) {
    if (!CredentialError.isInstance(error)) throw error
    throw new CredentialError('source_invalid', `${path}: ${error.message}`)
  }
}

function indexed(list: readonly unknown[]): KeyRules {
  const rules = new Map<string, KeyRule>()
  for (const [index, raw] of list.entries()) {
    const rule = checkedRule(raw, `rules[${index}]`)
    const id = ruleId(rule.channel, rule.speaker)
    if (rules.has(id)) throw invalid(`rules[${index}] repeats the rule for ${describeRule(rule)}`)
    rules.set(id, rule)
  }
  return {
    size: rules.size,
    find: ({ channel, speaker }) => rules.get(ruleId(channel, speaker.id)) ?? rules.get(ruleId(channel)),
    values: () => rules.values(),
  }
}

/** How a rule is named to people: channel and speaker, never the key. */
export function describeRule(rule: Pick<KeyRule, 'channel' | 'speaker'>): string {
  return rule.speaker === undefined
    ? `channel ${rule.channel}`
    : `channel ${rule.channel}, speaker ${rule.speaker}`
}

function ruleList(text: string): unknown[] {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    // The parser's own message quotes the text, so it is not kept.
    throw invalid('it is not JSON')
  }
  const rules = isObject(parsed) ? parsed.rules : undefined
  if (!isObject(parsed) || !Array.isArray(rules)) throw invalid('it must be { "rules": [ … ] }')
  refuseUnknown(parsed, ['$schema', 'rules'], 'the top level')
  return rules
}

function checkedRule(raw: unknown, where: string): KeyRule {
  if (!isObject(raw)) throw invalid(`${where} is not an object`)
  refuseUnknown(raw, ['channel', 'speaker', 'key', 'origin'], where)
  const { channel, speaker, key, origin } = raw
  if (!isName(channel))
    throw invalid(`${where}.channel must be a non-empty string without control characters`)
  if (speaker !== undefined && !isName(speaker))
    throw invalid(`${where}.speaker must be a non-empty string without control characters`)
  if (typeof key !== 'string' || !/^(env:[A-Za-z_][A-Za-z0-9_]*|file:[^\0]+)$/.test(key)) {
    throw invalid(`${where}.key must be "env:NAME" or "file:PATH", not the key itself`)
  }
  if (
    origin !== undefined &&
    !(typeof origin === 'string' && /^https?:\/\//.test(origin) && URL.canParse(origin))
  ) {
    throw invalid(`${where}.origin must be an http(s) URL such as https://api.example.com`)
  }
  return { channel, key, ...(speaker !== undefined && { speaker }), ...(origin !== undefined && { origin }) }
}

function refuseUnknown(value: object, known: readonly string[], where: string): void {
  const odd = Object.keys(value).find((key) => !known.includes(key))
  // A field name is not repeated: somebody may have put a key there.
  if (odd !== undefined) throw invalid(`${where} has a field other than ${known.join(', ')}`)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isName(value: unknown): value is string {
  // Control characters are in no scope, see snapshotScope.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
  return typeof value === 'string' && value.trim() !== '' && !/[\u0000-\u001f\u007f]/.test(value)
}

function ruleId(channel: string, speaker?: string): string {
  return speaker === undefined ? channel : `${channel}\0${speaker}`
}

function invalid(what: string): CredentialError {
  return new CredentialError('source_invalid', what)
}
