import { decodeStart } from '../json/decode-string.ts'
import { type JsonReader, type Token, token } from '../json/json-reader.ts'
import type { NumberRule, RequestHost, StringRule, ValueRule } from './request-table.ts'

/** Strings beyond this are not decoded, in bytes of JSON. */
export const DECODED_BYTES = 4096
/** Numbers that are longer are not taken for what they seem: an exponent may stand at their end. */
const NUMBER_BYTES = 64
const START_CHARS = 64

/** Says why the scalar that was read last is not admitted, or `undefined` when it is. */
export function scalarProblem(
  reader: JsonReader,
  found: Token,
  rule: ValueRule,
  host: RequestHost,
): string | undefined {
  switch (found) {
    case token.null:
      return rule.null === true ? undefined : wanted(rule)
    case token.true:
    case token.false:
      if (rule.boolean === undefined) return wanted(rule)
      if (rule.boolean === true || rule.boolean.includes(found === token.true)) return undefined
      return `is not ${rule.boolean.join(' or ')}`
    case token.number:
      if (rule.number === undefined) return wanted(rule)
      return rule.number === true ? undefined : numberProblem(readNumber(reader), rule.number)
    case token.string:
      if (rule.string === undefined) return wanted(rule)
      return rule.string === true ? undefined : stringProblem(reader, rule.string, host)
    default:
      return wanted(rule)
  }
}

/** Says which types a rule admits. */
export function wanted(rule: ValueRule): string {
  const types = (['string', 'number', 'boolean', 'array', 'object', 'null'] as const).filter(
    (type) => rule[type] !== undefined,
  )
  return types.length === 0 ? 'is not allowed' : `is not ${types.map(withArticle).join(' or ')}`
}

/** The number that was read last; NaN when it is written at length. For comparing only: its own digits travel. */
export function readNumber({ bytes, start, end }: JsonReader): number {
  return end - start > NUMBER_BYTES ? Number.NaN : Number(bytes.toString('latin1', start, end))
}

function withArticle(type: string): string {
  if (type === 'null') return type
  return /^[ao]/.test(type) ? `an ${type}` : `a ${type}`
}

function numberProblem(value: number, rule: NumberRule): string | undefined {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = rule
  if (!(value >= min && value <= max)) return `is not between ${min} and ${max}`
  return rule.integer === true && !Number.isSafeInteger(value) ? 'is not a whole number' : undefined
}

function stringProblem(reader: JsonReader, rule: StringRule, host: RequestHost): string | undefined {
  const { start, end } = reader
  const size = end - start - 2
  if (rule.maxBytes !== undefined && size > rule.maxBytes) return `is longer than ${rule.maxBytes} bytes`
  if (
    rule.start !== undefined &&
    !rule.start.test(decodeStart(reader.bytes, start + 1, end - 1, START_CHARS))
  )
    return `does not start as ${rule.start.source}`
  if (rule.oneOf === undefined && rule.pattern === undefined && rule.owned === undefined) return undefined
  const text = size > DECODED_BYTES ? undefined : reader.text(start, end, reader.escaped)
  if (rule.oneOf !== undefined && (text === undefined || !rule.oneOf.includes(text)))
    return `is none of ${rule.oneOf.join(', ')}`
  if (rule.pattern !== undefined && (text === undefined || !rule.pattern.test(text)))
    return `does not match ${rule.pattern.source}`
  if (rule.owned === true && (text === undefined || host.ownsId?.(text) !== true))
    return 'names something that this conversation did not create'
  return undefined
}
