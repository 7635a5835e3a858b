import { readdirSync, realpathSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'
import { readFileHead } from '../shared/bounded-file.ts'
import { GuestError } from '../shared/errors.ts'

/** A skill of the operator's content: instructions that the model reads when it needs them. */
export interface Skill {
  /** The name of its directory. */
  readonly name: string
  readonly description: string
  /** Tools that may be called only after its `SKILL.md` was read. */
  readonly tools: readonly string[]
  readonly folder: string
}

/** The skills of a worker, by name. */
export type SkillIndex = ReadonlyMap<string, Skill>

/** The file that says what a skill is. */
export const SKILL_FILE = 'SKILL.md'
const SKILL_FILE_BYTES = 256 * 1024
const RETURNED_CHARS = 40_000
const SKILL_NAME = /^[a-z0-9][a-z0-9-]{0,63}$/

/**
 * Reads the head of every `SKILL.md` in a directory, sorted by name. No directory is no skills. Throws a
 * {@link GuestError} `content_invalid` for a skill without a description or with another name than its directory's.
 */
export function loadSkills(folder: string | undefined): SkillIndex {
  if (folder === undefined) return new Map()
  const names = directoriesOf(folder)
  return new Map(names.map((name) => [name, readSkill(join(folder, name), name)]))
}

/**
 * A file of a skill, cut at 40,000 characters with a note. Throws a {@link GuestError}
 * `tool_refused` for an unknown skill, and for a file that is not in it, also by a link, or over 256 KiB.
 */
export function readSkillFile(skills: SkillIndex, name: string, file: string): string {
  const skill = skills.get(name)
  if (skill === undefined) throw new GuestError('tool_refused', 'There is no such skill.')
  const text = readInside(skill.folder, file)
  if (text.length <= RETURNED_CHARS) return text
  return `${text.slice(0, RETURNED_CHARS)}\n\n[cut: ${text.length - RETURNED_CHARS} more characters]`
}

/** What the system prompt says about skills; empty without any. */
export function skillsPrompt(skills: SkillIndex): string {
  if (skills.size === 0) return ''
  const lines = [...skills.values()].map(({ name, description }) => `- ${name}: ${description}`)
  return `Skills. Before a task that one of them is about, read it with read_skill:\n${lines.join('\n')}`
}

/** The first skill that claims a tool and has not been read; `undefined` = the tool may be called. */
export function unreadClaim(skills: SkillIndex, tool: string, read: ReadonlySet<string>): string | undefined {
  const claims = [...skills.values()].filter(({ tools }) => tools.includes(tool)).map(({ name }) => name)
  return claims.some((name) => read.has(name)) ? undefined : claims[0]
}

function directoriesOf(folder: string): readonly string[] {
  try {
    const entries = readdirSync(folder).filter((name) => statSync(join(folder, name)).isDirectory())
    return entries.sort()
  } catch (cause) {
    throw new GuestError('content_invalid', `The skills directory ${folder} cannot be read`, { cause })
  }
}

function readSkill(folder: string, directory: string): Skill {
  const bad = (rule: string) => {
    throw new GuestError('content_invalid', `The skill ${directory}: ${rule}`)
  }
  if (!SKILL_NAME.test(directory)) bad('its directory has to be named in a-z, 0-9 and "-"')
  const [, head = bad(`${SKILL_FILE} has to begin with "---"`)] =
    /^---\r?\n(.*?)\r?\n---(\r?\n|$)/s.exec(readInside(folder, SKILL_FILE)) ?? []
  const fields = new Map(
    head.split('\n').flatMap((line) => {
      const [, name, value] = /^([a-z-]+):\s*(.*?)\s*$/.exec(line) ?? []
      return name === undefined || value === undefined ? [] : [[name, value.replace(/^(["'])(.*)\1$/, '$2')]]
    }) as [string, string][],
  )
  if (fields.get('name') !== directory) bad('its name has to be that of its directory')
  const description = fields.get('description') || bad('it has no description')
  const tools = (fields.get('tools') ?? '').replace(/^\[|\]$/g, '').split(',')
  return { name: directory, description, tools: tools.map((name) => name.trim()).filter(Boolean), folder }
}

/** Where the file really lies has to be inside the folder, whatever links say. */
function readInside(folder: string, file: string): string {
  const no = () => new GuestError('tool_refused', 'There is no such file in this skill.')
  let found: ReturnType<typeof readFileHead>
  try {
    const real = realpathSync(join(folder, file))
    if (!real.startsWith(`${realpathSync(folder)}${sep}`)) throw no()
    found = readFileHead(real, SKILL_FILE_BYTES)
  } catch (cause) {
    throw GuestError.isInstance(cause) ? cause : no()
  }
  if (found === undefined) throw no()
  if (found.size > SKILL_FILE_BYTES)
    throw new GuestError('tool_refused', `A skill's file has at most ${SKILL_FILE_BYTES} bytes.`)
  return found.bytes.toString('utf8')
}
