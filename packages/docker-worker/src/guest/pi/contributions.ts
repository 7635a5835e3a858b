import type { ExtensionFactory } from '@earendil-works/pi-coding-agent'
import type { ContributedTool, PiExtension } from '../../pi-content.ts'
import type { JsonObject } from '../shared/json.ts'
import type { Outbox } from './outbox.ts'

/** What a contributed tool works with while its turn is at hand. */
export interface ContributionTurn {
  readonly speaker: { readonly id: string; readonly name: string }
  readonly outbox: Outbox
}

/**
 * An extension with an operator's tools (WP-12). A file that a tool attaches while it runs goes along with the answer;
 * the model is told its name. `turn` throws when no turn is at hand.
 */
export function contributionExtension(
  tools: readonly ContributedTool[],
  turn: () => ContributionTurn,
): PiExtension {
  return (pi) => {
    for (const tool of tools) (pi as Parameters<ExtensionFactory>[0]).registerTool(piTool(tool, turn))
  }
}

function piTool(
  { name, description, parameters, execute }: ContributedTool,
  turn: () => ContributionTurn,
): Parameters<Parameters<ExtensionFactory>[0]['registerTool']>[0] {
  return {
    name,
    label: name,
    description,
    parameters: parameters as never,
    async execute(_id, input, signal) {
      const { speaker, outbox } = turn()
      const saved: string[] = []
      const text = await execute(input as JsonObject, {
        speaker: Object.freeze({ ...speaker }),
        ...(signal && { signal }),
        attachReplyFile: ({ name: wanted, data }) => {
          saved.push(outbox.save(wanted, data))
        },
      })
      const note = saved.length === 0 ? '' : `[goes along with the answer: ${saved.join(', ')}]`
      return {
        content: [{ type: 'text', text: [String(text), note].filter(Boolean).join('\n\n') }],
        details: undefined,
      }
    },
  }
}
