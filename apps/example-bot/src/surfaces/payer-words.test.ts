import { expect, test } from 'vitest'
import { payerWords } from './payer-words.ts'

const told = { rule: 'channel a:1', source: 'command:vault', fingerprint: undefined }

test.each([
  [{ rule: undefined, source: undefined, fingerprint: undefined }, 'Nobody pays here'],
  [told, 'leads to no key (command:vault)'],
  [{ ...told, deferred: true as const }, 'asks command:vault when somebody speaks'],
  [{ ...told, deferred: true as const, fingerprint: 'f00dcafe12' }, 'pays: command:vault, key f00dcafe.'],
])('%j is told as it is', (explanation, words) => {
  expect(payerWords(explanation)).toContain(words)
})
