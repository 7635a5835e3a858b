/** Words and figures for people. */

/** The host's reasons for turning a call down; others are shown as they are. */
const REASONS: Readonly<Record<string, string>> = {
  aborted: 'called off',
  budget_spent: 'too many calls',
  credential_error: 'the key could not be read',
  credential_invalid: 'the key is no key',
  credential_missing: 'no key',
  credential_refused: 'the worker sent a key of its own',
  credit_spent: 'no credit left',
  host_refused: 'another host was asked for',
  input_refused: 'the input does not fit',
  not_found: 'there is no such tool or route',
  reflection: 'answer held back: it carried the key',
  timeout: 'it took too long',
  tool_failed: 'the tool failed',
  turn_over: 'the turn was over',
  upstream_network: 'the provider was not reached',
  upstream_redirect: 'the provider pointed elsewhere',
  upstream_status: 'the provider refused',
}

/** A reason as words. */
export function reasonWords(reason: string): string {
  return Object.hasOwn(REASONS, reason) ? (REASONS[reason] ?? reason) : reason.replaceAll('_', ' ')
}

const CATEGORIES: Readonly<Record<string, string>> = {
  broker: 'the model service did not answer',
  container: 'no worker could be started',
  credential: 'no usable key',
  host: 'a function of the host failed',
  stopped: 'stopped',
  timeout: 'out of time',
  worker: 'the worker gave no answer',
  workspace: 'its files take too much room',
}

/** Why a turn has no answer. */
export function categoryWords(category = 'failed'): string {
  return Object.hasOwn(CATEGORIES, category) ? (CATEGORIES[category] ?? category) : category
}

/** `1 call`, `2 calls`. */
export function count(number: number, word: string): string {
  return `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`
}

/** A duration in milliseconds, short. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  return ms < 60_000
    ? `${(ms / 1_000).toFixed(1)} s`
    : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
}

/** An estimated amount; a dash when it is not known. */
export function money(amount: number | null, currency = ''): string {
  if (amount === null || currency === '') return '–'
  const digits = amount === 0 || amount >= 1 ? 2 : amount >= 0.01 ? 3 : amount >= 0.0001 ? 4 : 6
  return new Intl.NumberFormat('en', {
    style: 'currency',
    currency,
    currencyDisplay: 'narrowSymbol',
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(amount)
}

/** A size in bytes, short. */
export function size(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`
  return bytes < 1_048_576 ? `${(bytes / 1_024).toFixed(1)} KiB` : `${(bytes / 1_048_576).toFixed(1)} MiB`
}

/** A large number, short, for axes and tiles. */
export function short(number: number): string {
  return number < 10_000
    ? number.toLocaleString('en')
    : `${(number / 1_000).toFixed(number < 100_000 ? 1 : 0)}k`
}
