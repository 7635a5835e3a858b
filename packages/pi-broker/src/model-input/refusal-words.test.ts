import { expect, test } from 'vitest'
import { inputRefusal, unexpectedTag } from './refusal-words.ts'

test.each([
  [{ path: 'messages[3]', problem: 'Unexpected role "x"' }, 'messages.3: Unexpected role "x"'],
  [{ path: 'messages[3]', problem: "content.1: Input tag 'x'" }, "messages.3.content.1: Input tag 'x'"],
  [{ path: 'messages[3].content[0].text', problem: 'is missing' }, 'messages.3.content.0.text: is missing'],
  [{ path: '', problem: 'is no JSON' }, 'is no JSON'],
  [
    { path: 'messages[16384]', problem: 'is beyond the 16384 entries that are allowed' },
    'prompt is too long: messages.16384 is beyond the 16384 that are taken',
  ],
  [
    { path: 'tools[128]', problem: 'is beyond the 128 entries that are allowed' },
    'tools.128: is beyond the 128 entries that are allowed',
  ],
])('PB-22 W-39 %j', (problem, wording) => {
  expect(inputRefusal(problem)).toMatchObject({ reason: 'input_refused', wording, problem: wording })
})

test('PM-04 a tag of the guest’s is short and printable in our words', () => {
  expect(unexpectedTag(`a\n<b>${'x'.repeat(100)}`, ['text'])).toMatch(/^Input tag 'a\??\?b\?x{59,60}' found/)
  expect(unexpectedTag({ a: 1 }, ['text'])).toMatch(/^Input tag '' found/)
})
