import { expect, test } from 'vitest'
import { asksHostCompactor, type ConversationSize, compactionTrigger } from './compaction-tiers.ts'

const size = (changes: Partial<ConversationSize> = {}): ConversationSize => ({
  usable: 950_000,
  hostCompacts: true,
  ...changes,
})
const left = (by: 'host' | 'pi', tokensAfter: number) => size({ last: { by, tokensAfter } })

test.each([
  ['a small window: as Pi decides', size({ usable: 300_000 }), undefined],
  ['a large one: at 300,000', size({ usable: 300_001 }), 300_000],
  ['one that left little: at 300,000 again', left('host', 250_000), 300_000],
  ['one that left more than 250,000: at 500,000', left('host', 250_001), 500_000],
  ['one of Pi that left up to 450,000: at 500,000', left('pi', 450_000), 500_000],
  ['one of Pi that left more: as Pi decides', left('pi', 450_001), undefined],
  [
    'one that left much in a window of 400,000: as Pi decides',
    { ...left('host', 260_000), usable: 400_000 },
    undefined,
  ],
])('CP-13 %s', (_what, conversation, trigger) => {
  expect(compactionTrigger(conversation)).toBe(trigger)
})

test('CP-13 CP-14 the host’s compactor is asked up to 500,000 tokens, and not after it left more than that', () => {
  expect(asksHostCompactor(500_000, size())).toBe(true)
  expect(asksHostCompactor(500_001, size())).toBe(false)
  expect(asksHostCompactor(400_000, left('host', 500_001))).toBe(false)
  expect(asksHostCompactor(400_000, left('pi', 500_001))).toBe(true)
  expect(asksHostCompactor(400_000, size({ hostCompacts: false }))).toBe(false)
})
