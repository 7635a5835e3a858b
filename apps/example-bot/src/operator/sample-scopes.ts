import type { KeyRule } from '@sandbox/credential-scope/sources'
import type { Explain } from '../ledger.ts'
import type { OperatorConfig } from './read-bot-file.ts'

/**
 * A scope for every channel of the configuration that a rule is for, to try what it leads to: a pattern stands for the
 * channels that it fits, and a pattern of both for one that might be there.
 */
export function sampleScopes(
  rules: readonly KeyRule[],
  { channels }: Pick<OperatorConfig, 'channels'>,
): readonly Parameters<Explain>[0][] {
  return rules.flatMap(({ channel, speaker = 'anybody' }) =>
    Object.keys(channels)
      .flatMap((named) => both(channel, named))
      .map((key) => ({ channel: key, speaker: { id: speaker, name: speaker } })),
  )
}

/** The channel key that both stand for. */
function both(rule: string, named: string): readonly string[] {
  const [ruleStart, namedStart] = [rule, named].map((key) => key.replace(/\*$/, '')) as [string, string]
  const longer = ruleStart.length > namedStart.length ? ruleStart : namedStart
  const open = rule.endsWith('*') && named.endsWith('*')
  if (open) return longer.startsWith(ruleStart) && longer.startsWith(namedStart) ? [`${longer}any`] : []
  if (rule.endsWith('*')) return named.startsWith(ruleStart) ? [named] : []
  if (named.endsWith('*')) return rule.startsWith(namedStart) ? [rule] : []
  return rule === named ? [rule] : []
}
