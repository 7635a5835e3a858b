import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { CredentialError } from '@sandbox/credential-scope'
import { type Jsonc, type JsoncPath, readJsonc } from '@sandbox/credential-scope/sources'
import Schema from 'typebox/schema'
import { BotError } from '../errors.ts'
import { type BotFile, BotFileSchema } from './bot-schema.ts'

/** The prefix of the channels of the page and the terminal. */
export const ROOM = 'room'

/** The configuration as it was read: paths are absolute. */
export interface OperatorConfig extends BotFile {
  /** Of the file itself. */
  readonly path: string
}

const schema = Schema.Compile(BotFileSchema)
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Reads the operator's configuration.
 *
 * @throws BotError `config` with all that is wrong, a line each: `PATH:LINE: field: what, and what to do`.
 */
export function readBotFile(path: string): OperatorConfig {
  const file = resolve(path)
  const jsonc = parse(file)
  const problems = shapeProblems(jsonc.value)
  if (problems.length === 0) problems.push(...meaningProblems(jsonc.value as BotFile))
  if (problems.length > 0) throw refuse(file, jsonc, problems)
  return withPaths(jsonc.value as BotFile, file)
}

interface Problem {
  readonly at: JsoncPath
  readonly what: string
}

function parse(path: string): Jsonc {
  let text: string
  let mode: number
  try {
    text = readFileSync(path, 'utf8')
    mode = statSync(path).mode
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code ?? 'unknown error'
    const mend = code === 'ENOENT' ? 'Make one with: bot init' : 'Look at its owner and mode.'
    throw new BotError('config', `The configuration ${path} cannot be read (${code}). ${mend}`, { cause })
  }
  // Whoever may write it chooses where the keys are sent.
  if ((mode & 0o022) !== 0) {
    throw new BotError(
      'config',
      `The configuration ${path} may be written by others. Run: chmod go-w ${path}`,
    )
  }
  try {
    return readJsonc(text)
  } catch (cause) {
    if (!CredentialError.isInstance(cause)) throw cause
    const [, line = '1', what = ''] = /^line (\d+): (.*)$/s.exec(cause.message) ?? []
    throw new BotError('config', `${path}:${line}: this is not JSON, comments aside: ${what}.`, { cause })
  }
}

function shapeProblems(value: unknown): Problem[] {
  const [, errors] = schema.Errors(value)
  const problems = errors.flatMap((error): Problem[] => {
    const at = pointerPath(error.instancePath)
    const { keyword, params } = error as { keyword: string; params: Record<string, unknown> }
    // Told for the unknown member itself.
    if (keyword === 'additionalProperties') return []
    if (keyword === 'boolean') return [{ at, what: 'there is no such setting' }]
    if (keyword === 'required') return required(at, params.requiredProperties)
    return [{ at, what: words(keyword, params, error.message) }]
  })
  return problems.filter(({ at }, index) => problems.findIndex((other) => same(other.at, at)) === index)
}

function required(at: JsoncPath, names: unknown): Problem[] {
  return (names as string[]).map((name) => ({ at: [...at, name], what: 'is missing' }))
}

function words(keyword: string, params: Record<string, unknown>, message: string): string {
  if (keyword === 'enum') return `must be one of ${JSON.stringify(params.allowedValues).slice(1, -1)}`
  if (keyword === 'pattern') return 'has not the form that it needs; the schema file says which'
  return message
}

function same(a: JsoncPath, b: JsoncPath): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function pointerPath(pointer: string): JsoncPath {
  const parts = pointer.split('/').slice(1)
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')).map(asIndex)
}

function asIndex(part: string): string | number {
  return /^\d+$/.test(part) ? Number(part) : part
}

/** What no schema can say. */
function meaningProblems(file: BotFile): Problem[] {
  const { providers, surfaces } = file
  const problems = Object.entries(providers ?? {}).flatMap(([name, { url, allowHttp }]): Problem[] => {
    const at = ['providers', name, 'url']
    if (!URL.canParse(url)) return [{ at, what: 'is no URL' }]
    const { protocol, hostname, username } = new URL(url)
    if (username !== '') return [{ at, what: 'holds a user name; keys belong into the key file' }]
    if (protocol === 'https:' || (allowHttp === true && LOOPBACK.test(hostname))) return []
    const what = LOOPBACK.test(hostname) ? 'needs "allowHttp": true beside it' : 'must begin with https://'
    return [{ at, what }]
  })
  problems.push(...Object.entries(file.channels).flatMap((entry) => channelProblems(file, ...entry)))
  if (Object.keys(providers ?? { none: 1 }).length === 0) {
    problems.push({ at: ['providers'], what: 'names no service: add one, or leave it out for the stand-in' })
  }
  if (Object.keys(file.channels).length === 0) problems.push({ at: ['channels'], what: 'names no channel' })
  const rooms = Object.keys(file.channels).filter((key) => key.startsWith(`${ROOM}:`))
  if ((surfaces.web !== undefined || surfaces.terminal === true) && rooms.length === 0) {
    problems.push({ at: ['channels'], what: `needs a channel ${ROOM}:… for the page and the terminal` })
  }
  return problems
}

function channelProblems(
  { providers, surfaces }: BotFile,
  key: string,
  { provider, speakers, on }: BotFile['channels'][string],
): Problem[] {
  const at = ['channels', key]
  const pattern = key.endsWith('*')
  const surface = /^([a-z][a-z0-9_-]*):(?:[^*]+\*?|\*)$/.exec(key)?.[1]
  const problems: Problem[] = []
  const refuse = (field: string | undefined, what: string) =>
    problems.push({ at: field === undefined ? at : [...at, field], what })
  if (surface !== ROOM && surface !== 'discord') {
    refuse(undefined, `must begin with ${ROOM}: or discord:, as in "discord:123" or "discord:*"`)
  } else if (surface === 'discord' && surfaces.discord === undefined) {
    refuse(undefined, 'is on Discord, and surfaces.discord is not set')
  }
  if (surface === ROOM && pattern)
    refuse(undefined, `must be a whole key: the page shows each ${ROOM} by name`)
  if (surface === ROOM && (speakers?.length ?? 0) === 0) refuse('speakers', 'is missing: who speaks there')
  const ids = (speakers ?? []).map(({ id }) => id)
  if (new Set(ids).size < ids.length) refuse('speakers', 'names an id twice: who pays depends on it')
  if ([key, ...ids].some((part) => /\p{Cc}/u.test(part)))
    refuse(undefined, 'holds a control character, in its key or the id of a speaker')
  if (surface === 'discord' && speakers !== undefined) refuse('speakers', 'is for channels of the page')
  if (pattern && on !== undefined) refuse('on', 'is not for patterns: the owner turns their channels on')
  const named = provider !== undefined && providers !== undefined
  if (named && !Object.hasOwn(providers, provider))
    refuse('provider', `is not among: ${Object.keys(providers).join(', ')}`)
  if (providers === undefined && provider !== undefined)
    refuse('provider', 'is set, and there are no providers')
  return problems
}

function withPaths(file: BotFile, path: string): OperatorConfig {
  const from = (relative: string) => resolve(dirname(path), relative)
  const { workers, audit } = file
  return {
    ...file,
    path,
    stateDir: from(file.stateDir),
    keys: from(file.keys),
    ...(file.prices === undefined ? {} : { prices: from(file.prices) }),
    ...(audit === undefined ? {} : { audit: { ...audit, path: from(audit.path) } }),
    ...(workers?.piContent === undefined
      ? {}
      : { workers: { ...workers, piContent: from(workers.piContent) } }),
  }
}

function refuse(path: string, { lineOf }: Jsonc, problems: readonly Problem[]): BotError {
  const lines = problems
    .map(({ at, what }) => ({ line: lineOf(at), text: `${at.join('.') || 'the file'}: ${what}` }))
    .sort((a, b) => a.line - b.line)
    .map(({ line, text }) => `${path}:${line}: ${text}.`)
  return new BotError('config', lines.join('\n'))
}
