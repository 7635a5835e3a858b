import type { Explanation } from '../ledger.ts'

/** Who pays, as a sentence for a person: the rule and the source, never a key. */
export function payerWords(told: Explanation): string {
  if (told.rule === undefined) return 'Nobody pays here: no rule matches, and the call will be refused.'
  if (told.fingerprint === undefined && told.deferred === true) {
    return `The rule for ${told.rule} asks ${told.source} when somebody speaks.`
  }
  if (told.fingerprint === undefined) return `The rule for ${told.rule} leads to no key (${told.source}).`
  return `The rule for ${told.rule} pays: ${told.source}, key ${told.fingerprint.slice(0, 8)}.`
}
