import { expect, test } from 'vitest'
import { toChat } from './to-chat.ts'

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }

test('a whole conversation: system, text, pictures, tools, calls and results', () => {
  const chat = toChat(
    {
      model: 'm',
      max_tokens: 100,
      temperature: 0.5,
      stop_sequences: ['a', 'b', 'c', 'd', 'e'],
      stream: true,
      thinking: { type: 'enabled', budget_tokens: 1024 },
      system: [{ type: 'text', text: 'Be short.', cache_control: { type: 'ephemeral' } }],
      tools: [{ name: 'clock', description: 'Tells the time.', input_schema: { type: 'object' } }],
      tool_choice: { type: 'any' },
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hm', signature: 's' },
            { type: 'text', text: 'Let me see.' },
            { type: 'tool_use', id: 't1', name: 'clock', input: { zone: 'UTC' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'and?' },
            { type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: 'noon' }, image] },
          ],
        },
        { role: 'system', content: 'It is late.' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 't2', name: 'clock', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't2', content: 'one' }] },
      ],
    },
    'max_completion_tokens',
  )
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
  const call = (id: string, input: string) => ({
    id,
    type: 'function',
    function: { name: 'clock', arguments: input },
  })
  expect(chat).toEqual({
    model: 'm',
    max_completion_tokens: 100,
    temperature: 0.5,
    stop: ['a', 'b', 'c', 'd'],
    stream: true,
    stream_options: { include_usage: true },
    tools: [
      {
        type: 'function',
        function: { name: 'clock', description: 'Tells the time.', parameters: { type: 'object' } },
      },
    ],
    tool_choice: 'required',
    messages: [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] },
      { role: 'assistant', content: 'Let me see.', tool_calls: [call('t1', '{"zone":"UTC"}')] },
      { role: 'tool', tool_call_id: 't1', content: 'noon' },
      { role: 'user', content: [picture, { type: 'text', text: 'and?' }] },
      { role: 'system', content: 'It is late.' },
      { role: 'assistant', content: null, tool_calls: [call('t2', '{}')] },
      { role: 'tool', tool_call_id: 't2', content: 'one' },
    ],
  })
})

test.each([
  [{ type: 'auto' }, 'auto'],
  [{ type: 'none' }, 'none'],
  [
    { type: 'tool', name: 'x' },
    { type: 'function', function: { name: 'x' } },
  ],
  [undefined, undefined],
])('a choice of tools of %j becomes %j', (tool_choice, expected) => {
  const tools = [{ name: 'x', input_schema: {} }]
  expect(toChat({ model: 'm', max_tokens: 1, messages: [], tools, tool_choice }).tool_choice).toEqual(
    expected,
  )
})

test('plain words stay plain words, and nothing is added', () => {
  expect(toChat({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] })).toEqual({
    model: 'm',
    max_tokens: 1,
    messages: [{ role: 'user', content: 'hi' }],
  })
})
