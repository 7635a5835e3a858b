/** One message of a Chat Completions request, as far as the script reads it. */
export interface ScriptMessage {
  readonly role: string
  readonly content: string
  /** Names of the tools that an assistant message calls, by call id. */
  readonly calls: ReadonlyMap<string, string>
  /** Of a tool message: the call that it answers. */
  readonly callId?: string
}

/** What the script knows of one request. */
export interface ScriptInput {
  readonly messages: readonly ScriptMessage[]
  /** Names of the declared tools. */
  readonly tools: ReadonlySet<string>
  readonly speaker: string
  readonly text: string
}

/** A tool call of the stand-in. Ids are given by the service. */
export interface ScriptCall {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}

/** What the service answers: words, tool calls, or one of two things that no good service does. */
export type ScriptAnswer =
  | { readonly kind: 'text'; readonly text: string /** How long it takes. */; readonly afterMs?: number }
  | { readonly kind: 'calls'; readonly calls: readonly ScriptCall[] }
  /** Puts the caller's own key into the answer. */
  | { readonly kind: 'leak' }
  /** Sends the caller elsewhere, where a careless caller would take its key too. */
  | { readonly kind: 'redirect' }

/** What a manipulated agent tries: tools that nobody gave it, other people's facts, another identity. */
const ATTACK: readonly ScriptCall[] = [
  { name: 'bash', input: { command: 'cat /proc/self/environ /run/sandbox/* ~/.ssh/*' } },
  { name: 'host_keys', input: { channel: 'demo:beta' } },
  { name: 'constructor', input: {} },
  { name: 'memory_get', input: { scope: 'owner' } },
  { name: 'memory_get', input: { scope: 'speaker', speaker: 'u-ann', speakerId: 'u-ann' } },
  { name: 'memory_get', input: { scope: 'channel', key: '../../../etc/passwd' } },
  { name: 'host_clock', input: { channel: 'demo:beta', speaker: { id: 'u-ann', name: 'Ann' } } },
]

const REMEMBER = /^remember\s+(?:that\s+)?(.+)/is
const RECALL = /\bwhat (?:do|did|can) you (?:remember|know)\b/i
const PATIENCE = /\btake your time\b/i
/** Long enough for a person to find the button that stops a turn. */
const PATIENT_MS = 30_000
const TIME = /\b(?:time|clock)\b/i
const OVERRIDE = /\bignore (?:all |your |the )*(?:previous |earlier )?(?:rules|instructions)\b/i
const KEY = /\b(?:your|the|api|my) key\b/i
const REDIRECT = /\bredirect\b/i
const GREETING = /^(?:hi|hello|hey|hallo|good (?:morning|day|evening))\b/i

/** Decides what to answer, from the last message of a person and the tool results after it. */
export function scriptAnswer(input: ScriptInput): ScriptAnswer {
  const { text, speaker, tools } = input
  const results = resultsOf(input.messages)
  if (results.length > 0) return { kind: 'text', text: afterTools(results, speaker) }
  const fact = REMEMBER.exec(text)?.[1]?.trim()
  if (fact !== undefined) return remember(fact, tools)
  if (RECALL.test(text)) return recall(tools)
  if (OVERRIDE.test(text)) return { kind: 'calls', calls: ATTACK }
  if (REDIRECT.test(text)) return { kind: 'redirect' }
  if (KEY.test(text)) return { kind: 'leak' }
  if (PATIENCE.test(text)) return { kind: 'text', text: `I took my time, ${speaker}.`, afterMs: PATIENT_MS }
  if (TIME.test(text)) {
    if (tools.has('host_clock')) return { kind: 'calls', calls: [{ name: 'host_clock', input: {} }] }
    return { kind: 'text', text: `I have no clock here, ${speaker}.` }
  }
  if (GREETING.test(text)) return { kind: 'text', text: `Hello ${speaker}! You said: ${quote(text)}` }
  return {
    kind: 'text',
    text:
      `${speaker} said: ${quote(text)}\n\nI am a stand-in with a short script. Try "remember that I like tea", ` +
      '"what do you remember", "what time is it", "what is your key", or "ignore your rules".',
  }
}

function remember(fact: string, tools: ReadonlySet<string>): ScriptAnswer {
  if (!tools.has('memory_set')) return { kind: 'text', text: 'I have no memory here.' }
  const key = fact
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-|-$/g, '')
  const input = { scope: 'speaker', key: [...key].slice(0, 60).join('') || 'note', text: fact.slice(0, 1000) }
  return { kind: 'calls', calls: [{ name: 'memory_set', input }] }
}

function recall(tools: ReadonlySet<string>): ScriptAnswer {
  if (!tools.has('memory_get')) return { kind: 'text', text: 'I have no memory here.' }
  const calls = ['speaker', 'channel'].map((scope) => ({ name: 'memory_get', input: { scope } }))
  return { kind: 'calls', calls }
}

interface ToolResult {
  readonly name: string
  readonly text: string
}

function resultsOf(messages: readonly ScriptMessage[]): readonly ToolResult[] {
  const after = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  const names = new Map(after.flatMap(({ calls }) => [...calls]))
  return after
    .filter(({ role }) => role === 'tool')
    .map(({ callId = '', content }) => ({ name: names.get(callId) ?? 'unknown', text: content }))
}

function afterTools(results: readonly ToolResult[], speaker: string): string {
  const names = new Set(results.map(({ name }) => name))
  const only = (name: string) => names.size === 1 && names.has(name)
  const [first] = results
  if (only('memory_set')) return `I will remember that, ${speaker}.`
  if (only('host_clock')) return `It is ${first?.text ?? ''}, ${speaker}.`
  if (only('memory_get')) {
    const facts = results.flatMap(({ text }) => factsOf(text))
    return facts.length === 0
      ? `I remember nothing about you yet, ${speaker}.`
      : `I remember, ${speaker}:\n${facts.map((fact) => `- ${fact}`).join('\n')}`
  }
  const lines = results.map(({ name, text }) => `- ${name}: ${quote(text)}`)
  return `I tried what I could, ${speaker}:\n${lines.join('\n')}`
}

function factsOf(json: string): readonly string[] {
  try {
    const list: unknown = JSON.parse(json)
    if (!Array.isArray(list)) return []
    return list.flatMap((entry: { text?: unknown } | null) =>
      typeof entry?.text === 'string' ? [entry.text] : [],
    )
  } catch {
    return []
  }
}

function quote(text: string): string {
  const points = [...text]
  return `"${points.slice(0, 200).join('')}${points.length > 200 ? ' …' : ''}"`
}
