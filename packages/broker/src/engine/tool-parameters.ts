import { BrokerError } from './errors.ts'
import { compileInput, type InputCheck } from './tool-input.ts'
import { localSchema, schemaProblem } from './tool-schema.ts'

/** What a tool takes, checked and copied: later changes of the original do not reach it. */
export interface ToolParameters {
  readonly schema: Record<string, unknown>
  readonly check: InputCheck
}

/**
 * Reads the JSON Schema of a tool of the host (W-41).
 * @throws BrokerError `options_invalid`, naming `where` it stands in the options.
 */
export function readParameters(parameters: unknown, where: string): ToolParameters {
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters)) {
    throw invalid(where, 'must be a JSON Schema object')
  }
  const problem = schemaProblem(parameters)
  if (problem !== undefined) throw invalid(where, problem)
  const schema = plainCopy(localSchema(parameters).schema, where)
  try {
    return { schema, check: compileInput(schema) }
  } catch (cause) {
    throw invalid(where, 'has a pattern that is no regular expression', cause)
  }
}

/**
 * What JSON makes of an object: later changes of the original do not reach the copy.
 * @throws BrokerError `options_invalid`, naming `where` it stands in the options.
 */
export function plainCopy(value: unknown, where: string): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(value)) as Record<string, unknown>
  } catch (cause) {
    throw invalid(where, 'is no plain JSON', cause)
  }
}

function invalid(where: string, problem: string, cause?: unknown): BrokerError {
  return new BrokerError('options_invalid', `${where}: ${problem}`, cause === undefined ? {} : { cause })
}
