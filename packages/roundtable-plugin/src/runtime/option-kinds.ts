import { SandboxPluginError } from '../errors.ts'

/** What an option is, where nobody who reads it would say so. `switch` is an object, or `false`. */
type Kind = 'string' | 'number' | 'boolean' | 'function' | 'list' | 'object' | 'switch'

/** The kind of each option. */
export type OptionKinds = Readonly<Record<string, Kind>>

const BOTH: OptionKinds = {
  image: 'string',
  engineSocket: 'string',
  limits: 'object',
  allowHttp: 'boolean',
  tools: 'list',
  mcp: 'list',
  timeZone: 'string',
  turnTimeoutMs: 'number',
  keyContact: 'string',
  onCall: 'function',
  onTurn: 'function',
  logger: 'object',
}

/** Of the sealed runtime. */
export const SEALED_KINDS: OptionKinds = { ...BOTH, prompt: 'string', apiKey: 'function' }

/** Of the Pi runtime. */
export const PI_KINDS: OptionKinds = {
  ...BOTH,
  prompt: 'string',
  content: 'string',
  oauthToken: 'function',
  judge: 'function',
  memory: 'function',
  forgetMemory: 'function',
  workspaceBytes: 'number',
  compaction: 'object',
  setFields: 'object',
}

/** Of both plugins. */
export const PLUGIN_KINDS: OptionKinds = {
  stateFile: 'string',
  initialChannels: 'list',
  provider: 'string',
  explain: 'function',
  admission: 'switch',
}

/** Of the Pi plugin alone. */
export const PI_PLUGIN_KINDS: OptionKinds = {
  ...PLUGIN_KINDS,
  oauthToken: 'function',
  profileOf: 'function',
  attachments: 'switch',
  onProgress: 'function',
}

const WORDS: Readonly<Record<Kind, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  function: 'a function',
  list: 'an array',
  object: 'an object',
  switch: 'an object, or false',
}

/**
 * Refuses an option of another kind: it would fail at the first message, or silently mean something else. What is left
 * out or `undefined` is nobody's to check.
 * @throws SandboxPluginError `options_invalid`, with the option and the kind that it has
 */
export function checkOptionKinds(options: object, kinds: OptionKinds): void {
  if (kindOf(options) !== 'object') throw invalid('the options', 'an object', options)
  for (const [name, kind] of Object.entries(kinds)) {
    const value: unknown = (options as Record<string, unknown>)[name]
    if (value !== undefined && !isA(kind, value)) throw invalid(name, WORDS[kind], value)
  }
}

/**
 * Refuses an option that has to be there and is not.
 * @throws SandboxPluginError `options_invalid`
 */
export function requireOption(options: object, name: string, what: string): void {
  const value: unknown = (options as Record<string, unknown>)[name]
  if (value === undefined) throw invalid(name, what, value)
}

/**
 * Refuses an option that is there and `undefined`, where leaving it out means somebody else's money.
 * @throws SandboxPluginError `options_invalid`
 */
export function refuseEmpty(options: object, name: string, what: string): void {
  if (Object.hasOwn(options, name)) requireOption(options, name, what)
}

function isA(kind: Kind, value: unknown): boolean {
  if (kind === 'list') return Array.isArray(value)
  if (kind === 'switch') return value === false || kindOf(value) === 'object'
  return kindOf(value) === kind
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : typeof value
}

function invalid(name: string, what: string, value: unknown): SandboxPluginError {
  return new SandboxPluginError('options_invalid', `${name}: must be ${what}, and is ${kindOf(value)}.`)
}
