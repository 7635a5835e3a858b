import { isDeepStrictEqual } from 'node:util'
import { schemaProblem } from '../../src/engine/tool-schema.ts'
import { normaliseChat } from '../../src/model-input/openai-chat.ts'
import { corpus, shaken } from '../corpus.ts'
import { type FuzzTarget, hold } from '../target.ts'

const seeds = corpus('chat')
const POLICY = { model: 'host-model', maxOutputTokens: 100, tokenLimitField: 'max_tokens' } as const
const TOP = new Set(['model', 'messages', 'tools', 'tool_choice', 'stream', 'max_tokens'])
const MESSAGE = new Set(['role', 'content', 'tool_calls', 'tool_call_id'])

/** The rebuilt body of `/model`. */
export const chatInput: FuzzTarget = {
  name: 'chat-input',
  about: 'the normaliser of /model: what is rebuilt holds what it may, and nothing else',
  run(random) {
    const body = shaken(random, random.pick(seeds))
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return
    const before = JSON.stringify(body)
    const made = normaliseChat(body as Record<string, unknown>, POLICY)
    hold(JSON.stringify(body) === before, 'the guest’s body was changed', body)
    if (!made.ok) {
      hold(made.problem !== '' && !/x\.example/.test(made.problem), 'a value is in the problem', made.problem)
      return
    }
    const { body: rebuilt, dropped } = made
    hold(rebuilt.model === POLICY.model && rebuilt.stream === false, 'the host’s fields', rebuilt)
    hold(rebuilt.max_tokens === POLICY.maxOutputTokens, 'the token limit', rebuilt)
    hold(dropped.length <= 32 && dropped.every((name) => name.length <= 64), 'too many names', dropped)
    for (const key of Object.keys(rebuilt)) hold(TOP.has(key), `field ${key} was let through`, body)
    for (const message of rebuilt.messages as object[]) {
      for (const key of Object.keys(message))
        hold(MESSAGE.has(key), `messages[].${key} was let through`, body)
    }
    for (const tool of (rebuilt.tools ?? []) as { type: string; function: { parameters: unknown } }[]) {
      hold(tool.type === 'function', 'another kind of tool was let through', tool)
      const { parameters } = tool.function
      hold(parameters === undefined || schemaProblem(parameters) === undefined, 'its schema', tool)
    }
    const again = normaliseChat(JSON.parse(JSON.stringify(rebuilt)), POLICY)
    hold(again.ok && isDeepStrictEqual(again.body, rebuilt), 'done twice is not done once', rebuilt)
  },
}
