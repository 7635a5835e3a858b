import { isObject } from './json.ts'

/** The id of a turn that may be broken otherwise, so that even then its result can be told. */
export function readTurnId(value: unknown): string | undefined {
  if (!isObject(value) || typeof value.turnId !== 'string') return undefined
  return value.turnId.length >= 1 && value.turnId.length <= 64 ? value.turnId : undefined
}
