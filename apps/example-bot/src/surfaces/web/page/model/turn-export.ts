import type { Receipt } from '../wire.ts'
import { outcomeOf } from './turn-filter.ts'

const COLUMNS: readonly (readonly [name: string, of: (receipt: Receipt) => string | number | null])[] = [
  ['at', ({ at }) => at],
  ['turn', ({ turnId }) => turnId],
  ['channel', ({ channel }) => channel],
  ['speaker_id', ({ speaker }) => speaker.id],
  ['speaker_name', ({ speaker }) => speaker.name],
  ['outcome', outcomeOf],
  ['category', ({ category }) => category ?? ''],
  ['cause', ({ cause }) => cause ?? ''],
  ['rule', ({ payments }) => list(payments.map(({ rule }) => rule ?? ''))],
  ['source', ({ payments }) => list(payments.map(({ source }) => source ?? ''))],
  ['key', ({ payments }) => list(payments.map(({ fingerprint }) => fingerprint))],
  [
    'refusals',
    ({ refusals }) => list(Object.entries(refusals).map(([reason, times]) => `${reason} x${times}`)),
  ],
  ['model_calls', ({ modelCalls }) => modelCalls],
  ['tools', ({ toolCalls }) => list(toolCalls)],
  ['tokens_in', ({ tokens }) => tokens.input],
  ['tokens_out', ({ tokens }) => tokens.output],
  ['cost_estimate', ({ cost }) => cost],
  ['duration_ms', ({ durationMs }) => durationMs],
  ['driver', ({ driver }) => driver],
  ['worker', ({ workerId }) => workerId ?? ''],
]

/** The turns as RFC 4180 has it, a row each. No cell is a formula for a spreadsheet, whoever chose its words. */
export function turnsAsCsv(receipts: readonly Receipt[]): string {
  const rows = receipts.map((receipt) => COLUMNS.map(([, of]) => cell(of(receipt))))
  return [COLUMNS.map(([name]) => name), ...rows].map((row) => `${row.join(',')}\r\n`).join('')
}

/** The turns as JSON, with everything that the page knows of them. */
export function turnsAsJson(receipts: readonly Receipt[]): string {
  return `${JSON.stringify({ turns: receipts }, undefined, 2)}\n`
}

function list(words: readonly string[]): string {
  return [...new Set(words)].filter(Boolean).join('; ')
}

/** What spreadsheets take for a formula, also after blanks, in its usual and its full width. */
const FORMULA = /^[\s\p{Cc}\p{Cf}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/u

function cell(value: string | number | null): string {
  if (value === null) return ''
  if (typeof value === 'number') return String(value)
  return `"${(FORMULA.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`
}
