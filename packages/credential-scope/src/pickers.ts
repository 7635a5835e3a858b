import type { CredentialGetter } from './credential-source.ts'
import type { SandboxCredentialScope } from './scope.ts'
import { askWithNote, namedSource, notedGetter } from './traced-getter.ts'

/** What a table leads to: another getter, or the credential itself. */
export type PickerEntry = CredentialGetter | string

/** A table by name, as an object or, for many entries, a `Map`. It is copied: later changes do not reach a picker. */
export type PickerTable<T> = Readonly<Record<string, T>> | ReadonlyMap<string, T>

/**
 * Picks by channel key. A channel that is not in the table has no credential; an empty table refuses everything.
 *
 * @throws TypeError for a table with an unusable entry.
 */
export function byChannel(table: PickerTable<PickerEntry>): CredentialGetter {
  const entries = getters(table)
  return choose(({ channel }) => {
    const getter = entries.get(channel)
    return getter && { rule: `channel ${channel}`, getter }
  })
}

/**
 * Picks by speaker id, whatever the channel. Display names are never looked at.
 *
 * @throws TypeError for a table with an unusable entry.
 */
export function bySpeaker(table: PickerTable<PickerEntry>): CredentialGetter {
  const entries = getters(table)
  return choose(({ speaker: { id } }) => {
    const getter = entries.get(id)
    return getter && { rule: `speaker ${id}`, getter }
  })
}

/**
 * Picks by channel key and, in it, by speaker id. Both must be in the table.
 *
 * @throws TypeError for a table with an unusable entry.
 */
export function byChannelAndSpeaker(table: PickerTable<PickerTable<PickerEntry>>): CredentialGetter {
  const channels = new Map(entriesOf(table).map(([channel, speakers]) => [channel, getters(speakers)]))
  return choose(({ channel, speaker: { id } }) => {
    const getter = channels.get(channel)?.get(id)
    return getter && { rule: `channel ${channel}, speaker ${id}`, getter }
  })
}

/**
 * Picks by the beginning of the channel key: `discord:*` is every channel of that surface. A `*` stands at the
 * end only; a pattern without one is a whole key. The longest fitting pattern chooses, wherever it stands.
 *
 * @throws TypeError for an unusable pattern; `*` alone is one, since it would give a credential to every channel
 * of every surface to come.
 */
export function byPattern(table: PickerTable<PickerEntry>): CredentialGetter {
  const exact = new Map<string, CredentialGetter>()
  const prefixes = new Map<string, CredentialGetter>()
  for (const [pattern, getter] of getters(table)) {
    checkPattern(pattern)
    if (pattern.endsWith('*')) prefixes.set(pattern.slice(0, -1), getter)
    else exact.set(pattern, getter)
  }
  const lengths = [...new Set([...prefixes.keys()].map((prefix) => prefix.length))].sort((a, b) => b - a)
  return choose(({ channel }) => {
    const whole = exact.get(channel)
    if (whole !== undefined) return { rule: `pattern ${channel}`, getter: whole }
    for (const length of lengths) {
      const prefix = channel.slice(0, length)
      const getter = prefix.length === length ? prefixes.get(prefix) : undefined
      if (getter !== undefined) return { rule: `pattern ${prefix}*`, getter }
    }
    return undefined
  })
}

/**
 * Asks one getter after the other and takes the first credential. This is the only way in which a scope without a
 * credential of its own gets another one. A getter that throws ends it: a failure is not "none".
 */
export function firstOf(...getters: readonly CredentialGetter[]): CredentialGetter {
  for (const getter of getters) checkGetter(getter, 'firstOf')
  return notedGetter(async (scope, request, note) => {
    const outer = note.rules.length
    for (const getter of getters) {
      note.rules.length = outer
      delete note.source
      const answer = await askWithNote(getter, scope, request, note)
      const token: unknown = typeof answer === 'object' && answer !== null ? answer.token : answer
      if (token !== undefined && token !== null && token !== '') return answer
    }
    return undefined
  })
}

/**
 * Refuses every scope for which `allow` does not answer exactly `true`; the getter behind is then not asked.
 * `allow` may promise and may throw, which fails the call.
 */
export function denyUnless(
  allow: (scope: SandboxCredentialScope) => boolean | Promise<boolean>,
  getter: CredentialGetter,
): CredentialGetter {
  checkGetter(allow, 'denyUnless')
  checkGetter(getter, 'denyUnless')
  return notedGetter(async (scope, request, note) => {
    if ((await allow(scope)) === true) return askWithNote(getter, scope, request, note)
    note.rules.push('denied')
    return undefined
  })
}

interface Choice {
  readonly rule: string
  readonly getter: CredentialGetter
}

function choose(pick: (scope: SandboxCredentialScope) => Choice | undefined): CredentialGetter {
  return notedGetter((scope, request, note) => {
    const choice = pick(scope)
    if (choice === undefined) return undefined
    note.rules.push(choice.rule)
    return askWithNote(choice.getter, scope, request, note)
  })
}

function getters(table: PickerTable<PickerEntry>): Map<string, CredentialGetter> {
  return new Map(
    entriesOf(table).map(([name, entry]) => {
      if (typeof entry === 'string') return [name, namedSource('literal', () => entry)]
      checkGetter(entry, `the entry for ${name}`)
      return [name, entry]
    }),
  )
}

function entriesOf<T>(table: PickerTable<T>): (readonly [string, T])[] {
  if (typeof table !== 'object' || table === null) throw new TypeError('A picker needs a table')
  const entries = table instanceof Map ? [...(table as ReadonlyMap<string, T>)] : Object.entries(table)
  for (const [name] of entries) {
    if (typeof name !== 'string' || name.trim() === '') throw new TypeError('A table has an empty name')
  }
  return entries
}

function checkGetter(value: unknown, where: string): void {
  if (typeof value !== 'function') throw new TypeError(`${where} needs a function`)
}

function checkPattern(pattern: string): void {
  if (pattern === '*') {
    throw new TypeError(
      'The pattern * would give its credential to every channel: name the surface, discord:*',
    )
  }
  if (pattern.indexOf('*') < pattern.length - 1 && pattern.includes('*')) {
    throw new TypeError(`The pattern ${pattern} has a * before its end`)
  }
}
