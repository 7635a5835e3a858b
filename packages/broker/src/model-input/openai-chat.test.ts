import { describe, expect, it } from 'vitest'
import { type ChatPolicy, normaliseChat } from './openai-chat.ts'

const policy: ChatPolicy = { model: 'host-model', maxOutputTokens: 4096, tokenLimitField: 'max_tokens' }
const hello = { role: 'user', content: 'hello' }
const call = { id: 'call_1', type: 'function', function: { name: 'host_clock', arguments: '{}' } }
const tool = {
  type: 'function',
  function: { name: 'host_clock', description: 'Tells the time.', parameters: { type: 'object' } },
}

function accepted(body: Record<string, unknown>, with_: ChatPolicy = policy) {
  const result = normaliseChat(body, with_)
  if (!result.ok) throw new TypeError(result.problem)
  return result
}

function problem(body: Record<string, unknown>): string {
  const result = normaliseChat(body, policy)
  return result.ok ? 'accepted' : result.problem
}

const withMessage = (message: unknown) => problem({ messages: [hello, message] })
const withCall = (changed: object) =>
  withMessage({ role: 'assistant', content: '', tool_calls: [{ ...call, ...changed }] })
const withTool = (changed: object) =>
  problem({ messages: [hello], tools: [{ ...tool, function: { ...tool.function, ...changed } }] })

describe('SB-23 what is forwarded', () => {
  it('the host sets model, limit and stream, and the guest loses every other field', () => {
    const result = accepted({
      messages: [hello],
      model: 'guest-model',
      max_tokens: 999_999,
      max_completion_tokens: 5,
      stream: true,
      callback_url: 'https://evil.example',
      temperature: 2,
      web_search_options: {},
    })
    expect(result.body).toEqual({ model: 'host-model', messages: [hello], stream: false, max_tokens: 4096 })
    expect(result.dropped).toEqual([
      'model',
      'max_tokens',
      'max_completion_tokens',
      'stream',
      'callback_url',
      'temperature',
      'web_search_options',
    ])
  })

  it('decision 12: the limit goes where the endpoint wants it', () => {
    const result = accepted({ messages: [hello] }, { ...policy, tokenLimitField: 'max_completion_tokens' })
    expect(result.body).toEqual({
      model: 'host-model',
      messages: [hello],
      stream: false,
      max_completion_tokens: 4096,
    })
  })

  it('a guest that asks for just what the host sets has nothing dropped', () => {
    const result = accepted({ messages: [hello], tools: [tool], tool_choice: 'auto', model: 'host-model' })
    expect(result.dropped).toEqual([])
    expect(result.body).toMatchObject({ tools: [tool], tool_choice: 'auto' })
  })

  it('messages are copies and the body of the guest is not changed', () => {
    const body = { messages: [{ ...hello }], tools: [structuredClone(tool)], x: 1 }
    const before = structuredClone(body)
    const result = accepted(body)
    expect(body).toEqual(before)
    expect((result.body.messages as object[])[0]).not.toBe(body.messages[0])
  })
})

describe('messages', () => {
  it('MI-01 an array of at most 128', () => {
    for (const messages of [undefined, null, {}, 'x']) expect(problem({ messages })).toMatch('messages')
    expect(problem({ messages: Array.from({ length: 128 }, () => hello) })).toBe('accepted')
    expect(problem({ messages: Array.from({ length: 129 }, () => hello) })).toMatch('128')
  })

  it.each(['developer', 'function', 'User', '', null, 'constructor', '__proto__'])(
    'MI-02 role %s is refused',
    (role) => expect(withMessage({ role, content: 'x' })).toMatch('messages[1].role'),
  )

  it.each(['system', 'user', 'assistant'])('MI-02 role %s passes', (role) => {
    expect(withMessage({ role, content: 'x' })).toBe('accepted')
  })

  it.each([
    ['parts', [{ type: 'text', text: 'x' }]],
    ['an image', [{ type: 'image_url', image_url: { url: 'https://evil.example/a.png' } }]],
    ['a file', [{ type: 'file', file: { file_id: 'file-1' } }]],
    ['an object', {}],
    ['a number', 1],
    ['null', null],
    ['nothing', undefined],
  ])('MI-03 content that is %s is refused', (_, content) => {
    for (const role of ['system', 'user', 'assistant']) {
      expect(withMessage({ role, content })).toMatch('messages[1].content')
    }
  })

  it.each(['file_id', 'name', 'function_call', 'audio', '__proto__', 'constructor'])(
    'MI-04 message field %s refuses the request',
    (key) => {
      const message = JSON.parse(`{"role":"user","content":"x","${key}":"y"}`)
      expect(withMessage(message)).toMatch('messages[1] has a field other')
    },
  )

  it('a message that is no object is refused, an inherited field does not count', () => {
    for (const message of [null, 'x', [], 1]) expect(withMessage(message)).toMatch('messages[1]')
    expect(withMessage(Object.create(hello))).toMatch('messages[1].role')
    expect(problem(Object.create({ messages: [hello] }))).toMatch('messages')
  })

  it('MI-06 tool messages, and only they, name their call', () => {
    expect(withMessage({ role: 'tool', content: 'x', tool_call_id: 'a'.repeat(128) })).toBe('accepted')
    for (const id of [undefined, null, '', 'a'.repeat(129), 7]) {
      expect(withMessage({ role: 'tool', content: 'x', tool_call_id: id })).toMatch('tool_call_id')
    }
    expect(withMessage({ ...hello, tool_call_id: 'a' })).toMatch('tool_call_id')
    expect(withMessage({ ...hello, tool_call_id: null })).toMatch('tool_call_id')
  })
})

describe('MI-05 tool calls', () => {
  it('are rebuilt, and what they carry beside is named', () => {
    const result = accepted({
      messages: [
        {
          role: 'assistant',
          content: 'x',
          tool_calls: [{ ...call, index: 0, function: { ...call.function, url: 'https://evil.example' } }],
        },
      ],
    })
    expect(result.body.messages).toEqual([{ role: 'assistant', content: 'x', tool_calls: [call] }])
    expect(result.dropped).toEqual(['messages[].tool_calls[].index', 'messages[].tool_calls[].function.url'])
  })

  it('belong to the assistant, are a list, and at most 8', () => {
    expect(withMessage({ role: 'user', content: 'x', tool_calls: [call] })).toMatch('role assistant only')
    expect(withMessage({ role: 'assistant', content: 'x', tool_calls: call })).toMatch('not an array')
    expect(withMessage({ role: 'assistant', content: 'x', tool_calls: null })).toMatch('not an array')
    const many = (count: number) => ({
      role: 'assistant',
      content: 'x',
      tool_calls: Array.from({ length: count }, () => call),
    })
    expect(withMessage(many(8))).toBe('accepted')
    expect(withMessage(many(9))).toMatch('more than 8')
  })

  it.each([
    ['type', { type: 'web_search_call' }],
    ['type', { type: undefined }],
    ['id', { id: '' }],
    ['id', { id: 'a'.repeat(129) }],
    ['id', { id: 5 }],
    ['function', { function: null }],
    ['function.name', { function: { ...call.function, name: 'Bad-Name' } }],
    ['function.name', { function: { ...call.function, name: 'a'.repeat(65) } }],
    ['function.name', { function: { ...call.function, name: 'good\n' } }],
    ['function.arguments', { function: { ...call.function, arguments: {} } }],
  ])('a wrong %s is refused', (field, changed) => {
    expect(withCall(changed)).toMatch(`messages[1].tool_calls[0].${field} `)
  })

  it('W-40 content may be null or absent beside calls, and only there', () => {
    for (const content of [null, undefined]) {
      const result = accepted({ messages: [{ role: 'assistant', content, tool_calls: [call] }] })
      expect(result.body.messages).toEqual([{ role: 'assistant', content: '', tool_calls: [call] }])
    }
    expect(withMessage({ role: 'assistant', content: null, tool_calls: [] })).toMatch('content')
    expect(
      accepted({ messages: [{ role: 'assistant', content: 'x', tool_calls: [] }] }).body.messages,
    ).toEqual([{ role: 'assistant', content: 'x' }])
  })
})

describe('MI-07 tools', () => {
  it('are rebuilt from three fields', () => {
    const result = accepted({
      messages: [hello],
      tools: [{ ...tool, cache_control: {}, function: { ...tool.function, strict: true } }],
    })
    expect(result.body.tools).toEqual([tool])
    expect(result.dropped).toEqual(['tools[].cache_control', 'tools[].function.strict'])
  })

  it.each(['web_search', 'file_search', 'code_interpreter', 'mcp', 'custom', undefined])(
    'type %s is refused',
    (type) => expect(problem({ messages: [hello], tools: [{ ...tool, type }] })).toMatch('tools[0].type'),
  )

  it.each([
    ['name', { name: '1a' }],
    ['name', { name: undefined }],
    ['description', { description: undefined }],
    ['description', { description: null }],
    ['parameters', { parameters: undefined }],
    ['parameters', { parameters: true }],
    ['parameters', { parameters: [] }],
  ])('a wrong %s is refused', (field, changed) => {
    expect(withTool(changed)).toMatch(`tools[0].function.${field} `)
  })

  it('SB-22 a remote schema reference is refused, W-38 a dialect URL is dropped', () => {
    expect(withTool({ parameters: { properties: { a: { $ref: 'https://evil.example' } } } })).toMatch('$ref')
    const result = accepted({
      messages: [hello],
      tools: [
        {
          ...tool,
          function: {
            ...tool.function,
            parameters: { $schema: 'https://json-schema.org/x', type: 'object' },
          },
        },
      ],
    })
    expect(result.body.tools).toEqual([tool])
    expect(result.dropped).toEqual(['tools[].function.parameters.$schema'])
  })

  it('issue 4: the schemas of all tools together are bounded: they are looked at in one piece', () => {
    const parameters = { enum: Array.from({ length: 9000 }, () => []) }
    const named = (name: string) => ({ ...tool, function: { ...tool.function, name, parameters } })
    expect(problem({ messages: [hello], tools: [named('a')] })).toBe('accepted')
    expect(problem({ messages: [hello], tools: [named('a'), named('b')] })).toMatch('16384')
  })
  it('names are unique, 128 tools at most, none at all is the same as no list', () => {
    expect(problem({ messages: [hello], tools: [tool, tool] })).toMatch('tools[1].function.name')
    const many = (count: number) => ({
      messages: [hello],
      tools: Array.from({ length: count }, (_, n) => ({
        ...tool,
        function: { ...tool.function, name: `t${n}` },
      })),
    })
    expect(problem(many(128))).toBe('accepted')
    expect(problem(many(129))).toMatch('more than 128')
    expect(problem({ messages: [hello], tools: {} })).toMatch('tools')
    expect(Object.hasOwn(accepted({ messages: [hello], tools: [] }).body, 'tools')).toBe(false)
  })
})

describe('W-40 tool_choice', () => {
  it.each(['auto', 'none', 'required'])('%s passes', (choice) => {
    const result = accepted({ messages: [hello], tools: [tool], tool_choice: choice })
    expect(result.body.tool_choice).toBe(choice)
  })

  it('anything else is refused', () => {
    for (const choice of [
      'any',
      null,
      { type: 'function', function: { name: 'host_clock' } },
      'constructor',
    ]) {
      expect(problem({ messages: [hello], tools: [tool], tool_choice: choice })).toMatch('tool_choice')
    }
  })

  it('is dropped when there is nothing to choose from', () => {
    const result = accepted({ messages: [hello], tool_choice: 'auto' })
    expect(Object.hasOwn(result.body, 'tool_choice')).toBe(false)
    expect(result.dropped).toEqual(['tool_choice'])
  })
})

describe('MI-13 unknown top-level fields', () => {
  it('are ignored, also those that name a prototype', () => {
    const body = JSON.parse('{"messages":[],"__proto__":{"stream":true},"constructor":1,"toString":2}')
    const result = accepted(body)
    expect(JSON.stringify(result.body)).toBe(
      '{"model":"host-model","messages":[],"stream":false,"max_tokens":4096}',
    )
    expect(result.dropped).toEqual(['__proto__', 'constructor', 'toString'])
  })

  it('are named in few, short and printable words', () => {
    const many = Object.fromEntries(
      Array.from({ length: 500 }, (_, n) => [`\u0007\n${n}${'x'.repeat(500)}`, 1]),
    )
    const { dropped } = accepted({ messages: [], ...many })
    expect(dropped).toHaveLength(32)
    for (const name of dropped) expect(name).toMatch(/^\?\?[\w$.-]{1,62}$/)
  })
})

it('problems never quote what the guest sent', () => {
  const loud = 'SECRET-LOOKING'
  const texts = [
    withMessage({ role: loud, content: 'x' }),
    withMessage({ role: 'user', content: 'x', [loud]: 1 }),
    withCall({ type: loud }),
    withTool({ name: loud }),
    withTool({ parameters: { $ref: loud } }),
    problem({ messages: [hello], tool_choice: loud }),
  ]
  for (const text of texts) expect(text).not.toMatch(loud)
})
