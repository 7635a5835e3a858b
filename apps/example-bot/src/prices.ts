import { readFileSync } from 'node:fs'
import { BotError } from './errors.ts'

/** What a model costs per million tokens. */
export interface ModelPrice {
  readonly input: number
  readonly output: number
}

/** What models cost, as the operator says; it is an estimate and no bill. */
export interface Prices {
  /** An ISO 4217 code, such as `USD`. */
  readonly currency: string
  readonly models: Readonly<Record<string, ModelPrice>>
}

const NONE: Prices = { currency: 'USD', models: {} }

/**
 * Reads the operator's price list; no file means that no price is known.
 *
 * ```json
 * { "currency": "USD", "models": { "the-model": { "input": 2.5, "output": 10 } } }
 * ```
 *
 * @throws BotError `state_dir` that names the file and what is wrong with it.
 */
export function readPrices(path: string): Prices {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return NONE
    throw refuse(path, 'cannot be read', error)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw refuse(path, 'is no JSON', error)
  }
  if (!isObject(value) || !isObject(value.models)) throw refuse(path, 'has no object "models"')
  const { currency = NONE.currency } = value
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency)) {
    throw refuse(path, 'names a "currency" that is no code such as "USD"')
  }
  const models = Object.entries(value.models).map(
    ([name, price]) => [name, priceOf(path, name, price)] as const,
  )
  return { currency, models: Object.fromEntries(models) }
}

/** What tokens of a model cost, in the currency of the list; `null` when the model has no price. */
export function costOf(
  { models }: Prices,
  model: string | undefined,
  tokens: { input: number; output: number },
): number | null {
  const price = model !== undefined && Object.hasOwn(models, model) ? models[model] : undefined
  if (price === undefined) return null
  return (tokens.input * price.input + tokens.output * price.output) / 1_000_000
}

function priceOf(path: string, name: string, price: unknown): ModelPrice {
  if (isObject(price)) {
    const { input, output } = price
    if (isAmount(input) && isAmount(output)) return { input, output }
  }
  throw refuse(path, `needs the numbers "input" and "output" for the model ${JSON.stringify(name)}`)
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refuse(path: string, what: string, cause?: unknown): BotError {
  return new BotError('state_dir', `The price list ${path} ${what}: mend it, or remove it.`, { cause })
}
