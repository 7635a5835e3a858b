import type { ToolDefinition } from '@earendil-works/pi-coding-agent'
import type { PiMcpSpec, PiToolSpec } from '@sandbox/protocol'
import type { JsonObject } from '../shared/json.ts'
import { type AttachmentPart, readAttachment } from './attachments.ts'
import type { LoadedContent } from './content.ts'
import { namesForReferences, takesReferences, withReferences } from './image-references.ts'
import { readSkillFile, SKILL_FILE } from './skills.ts'
import type { ToolReply } from './turn-calls.ts'
import type { TurnSlot } from './turn-slot.ts'

/** What the tools of a session are made from. */
export interface ToolParts {
  readonly workspace: string
  readonly content: LoadedContent
  readonly hostTools: readonly PiToolSpec[]
  readonly mcp: readonly PiMcpSpec[]
  readonly slot: TurnSlot
  /** Skills whose `SKILL.md` was read; the skill tool adds to it. */
  readonly skillsRead: Set<string>
}

/** The agent's own tools and ours. A host's tool with such a name must not switch one on or stand in for it. */
const OWN_NAMES = [
  'read',
  'bash',
  'powershell',
  'edit',
  'write',
  'grep',
  'find',
  'ls',
  'read_skill',
  'read_attachment',
]
const MODEL_NAME_CHARS = 128

/**
 * The tools that the worker adds to the agent: attachments, skills, the host's tools and those of the MCP servers as
 * `mcp_<server>_<tool>`. Their names are unique and fit the model's rules.
 */
export function workerTools(parts: ToolParts): readonly ToolDefinition[] {
  const { workspace, content, hostTools, mcp, slot, skillsRead } = parts
  const offered = hostTools.filter(({ name }) => content.brokerTools?.includes(name) ?? true)
  const taken = new Set(OWN_NAMES)
  const unique = (wanted: string, prefix: string) => {
    const plain = wanted.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, MODEL_NAME_CHARS)
    let name = taken.has(plain) ? `${prefix}_${plain}`.slice(0, MODEL_NAME_CHARS) : plain
    for (let count = 2; taken.has(name); count += 1) name = `${plain.slice(0, MODEL_NAME_CHARS - 5)}_${count}`
    taken.add(name)
    return name
  }
  return [
    ...(content.skills.size === 0 ? [] : [readSkillTool(content, skillsRead)]),
    readAttachmentTool(workspace),
    ...offered.map((spec) => hostTool(unique(spec.name, 'host'), spec, workspace, slot)),
    ...mcp.flatMap((server) =>
      server.tools.map(({ name, description, parameters }) =>
        tool(unique(`mcp_${server.name}_${name}`, 'mcp'), description, parameters, async (input, signal) =>
          replyContent(slot, name, await slot.get().calls.mcp(server.name, name, input, signal)),
        ),
      ),
    ),
  ]
}

type Content = Awaited<ReturnType<ToolDefinition['execute']>>['content']

function tool(
  name: string,
  description: string,
  parameters: JsonObject,
  run: (input: JsonObject, signal: AbortSignal | undefined) => Promise<Content>,
): ToolDefinition {
  return {
    name,
    label: name,
    description,
    parameters: parameters as unknown as ToolDefinition['parameters'],
    execute: async (_id, input, signal) => ({
      content: await run(input as JsonObject, signal),
      details: undefined,
    }),
  }
}

function hostTool(shown: string, spec: PiToolSpec, workspace: string, slot: TurnSlot): ToolDefinition {
  const { name, description, parameters } = spec
  const pictures = takesReferences(spec)
  const told = pictures ? namesForReferences(parameters) : parameters
  return tool(shown, description, told, async (input, signal) => {
    const sent = pictures ? withReferences(workspace, input) : input
    return replyContent(slot, name, await slot.get().calls.tool(name, sent, signal))
  })
}

function readSkillTool({ skills }: LoadedContent, skillsRead: Set<string>): ToolDefinition {
  const parameters = schema({
    skill: { type: 'string', enum: [...skills.keys()] },
    file: { type: 'string', description: 'A file of the skill; default SKILL.md' },
  })
  const description = 'Reads a skill: instructions for a kind of task.'
  return tool('read_skill', description, { ...parameters, required: ['skill'] }, async (input) => {
    const { skill, file = SKILL_FILE } = input
    const found = readSkillFile(skills, String(skill), String(file))
    if (file === SKILL_FILE) skillsRead.add(String(skill))
    return [text(found)]
  })
}

function readAttachmentTool(workspace: string): ToolDefinition {
  const parameters = schema({
    name: { type: 'string', description: 'The name of the attachment' },
    from: { type: 'integer', minimum: 0, description: 'First character to read; default 0' },
  })
  const description =
    'Reads a file that somebody attached to a message: an image, or up to 40000 characters of text.'
  return tool('read_attachment', description, { ...parameters, required: ['name'] }, async (input) => {
    const part = readAttachment(workspace, String(input.name), Number(input.from ?? 0))
    return [attachmentContent(part)]
  })
}

function attachmentContent(part: AttachmentPart): Content[number] {
  return 'text' in part ? text(part.text) : { type: 'image', ...part.image }
}

/** Images that a tool made go to the model and, as files, to the chat. */
function replyContent(slot: TurnSlot, name: string, { text: answer, images }: ToolReply): Content {
  const saved = images.map(({ mimeType, data }) => {
    const ending = mimeType.replace(/^image\//, '').replace('jpeg', 'jpg')
    return slot.get().outbox.save(`${name}.${ending}`, Buffer.from(data, 'base64'))
  })
  const note = saved.length === 0 ? '' : `[goes along with the answer: ${saved.join(', ')}]`
  return [
    text([answer, note].filter(Boolean).join('\n\n')),
    ...images.map((image) => ({ type: 'image' as const, ...image })),
  ]
}

function text(value: string): Content[number] {
  return { type: 'text', text: value }
}

function schema(properties: JsonObject): JsonObject {
  return { type: 'object', properties, additionalProperties: false }
}
