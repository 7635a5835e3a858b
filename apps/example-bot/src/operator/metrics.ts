import type { CallEvent } from '@sandbox/broker'
import type { TurnEvent } from '@sandbox/roundtable-plugin'

/** Upper bounds in seconds. */
const BUCKETS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600] as const

/** Options of {@link Metrics}. */
export interface MetricsOptions {
  /** How a channel is answered. */
  readonly modeOf: (channel: string) => string | undefined
}

/**
 * Counts what happens, for Prometheus (text format 0.0.4). No label holds a channel, a speaker or a key: their number
 * has no bound, and they are nobody's business there.
 */
export class Metrics {
  readonly #modeOf: MetricsOptions['modeOf']
  readonly #turns = new Counter('bot_turns_total', 'Turns that are over, by mode and outcome.')
  readonly #calls = new Counter('bot_calls_total', 'Calls of workers, by route and reason.')
  readonly #tokens = new Counter('bot_tokens_total', 'Tokens as the model services count them.')
  readonly #problems = new Counter(
    'bot_key_file_problems_total',
    'Times that the key file could not be used.',
  )
  readonly #buckets = new Map<string, { counts: number[]; sum: number }>()
  readonly #running = new Set<string>()

  constructor({ modeOf }: MetricsOptions) {
    this.#modeOf = modeOf
  }

  readonly onTurn = (event: TurnEvent): void => {
    if (event.state !== 'settled') {
      this.#running.add(event.turnId)
      return
    }
    this.#running.delete(event.turnId)
    const mode = this.#modeOf(event.channel) ?? 'none'
    this.#turns.add({ mode, outcome: event.ok === true ? 'ok' : (event.category ?? 'failed') })
    const histogram = this.#buckets.get(mode) ?? { counts: BUCKETS.map(() => 0), sum: 0 }
    this.#buckets.set(mode, histogram)
    const seconds = event.durationMs / 1000
    histogram.sum += seconds
    for (const [index, bound] of BUCKETS.entries()) {
      if (seconds <= bound) histogram.counts[index] = (histogram.counts[index] ?? 0) + 1
    }
  }

  readonly onCall = ({ route, reason, model, usage }: CallEvent): void => {
    this.#calls.add({ route, reason })
    if (usage === undefined) return
    const label = { model: model ?? 'unknown' }
    this.#tokens.add({ ...label, direction: 'input' }, usage.inputTokens ?? 0)
    this.#tokens.add({ ...label, direction: 'output' }, usage.outputTokens ?? 0)
  }

  readonly onKeyProblem = (): void => this.#problems.add({})

  /** Everything, as Prometheus reads it. */
  text(): string {
    return [
      ...this.#turns.lines(),
      ...this.#durations(),
      ...gauge('bot_turns_running', 'Turns that run or wait for their worker.', this.#running.size),
      ...this.#calls.lines(),
      ...this.#tokens.lines(),
      ...this.#problems.lines(),
      ...gauge(
        'process_resident_memory_bytes',
        'Memory of the bot without its workers.',
        process.memoryUsage.rss(),
      ),
      ...gauge(
        'process_start_time_seconds',
        'When the bot started.',
        Math.round(performance.timeOrigin / 1000),
      ),
      '',
    ].join('\n')
  }

  #durations(): string[] {
    const name = 'bot_turn_duration_seconds'
    const lines = [`# HELP ${name} From the message to its answer.`, `# TYPE ${name} histogram`]
    for (const [mode, { counts, sum }] of this.#buckets) {
      const all = this.#turns.sum((labels) => labels.mode === mode)
      const rows = [
        ...BUCKETS.map((bound, index) => [String(bound), counts[index] ?? 0] as const),
        ['+Inf', all] as const,
      ]
      for (const [le, count] of rows) lines.push(`${name}_bucket${shown({ mode, le })} ${count}`)
      lines.push(`${name}_sum${shown({ mode })} ${sum}`, `${name}_count${shown({ mode })} ${all}`)
    }
    return lines
  }
}

type Labels = Readonly<Record<string, string>>

class Counter {
  readonly #name: string
  readonly #help: string
  readonly #values = new Map<string, { readonly labels: Labels; value: number }>()

  constructor(name: string, help: string) {
    this.#name = name
    this.#help = help
  }

  add(labels: Labels, by = 1): void {
    const key = shown(labels)
    const found = this.#values.get(key)
    if (found === undefined) this.#values.set(key, { labels, value: by })
    else found.value += by
  }

  sum(which: (labels: Labels) => boolean): number {
    let sum = 0
    for (const { labels, value } of this.#values.values()) if (which(labels)) sum += value
    return sum
  }

  lines(): string[] {
    const values = [...this.#values].map(([labels, { value }]) => `${this.#name}${labels} ${value}`)
    return [`# HELP ${this.#name} ${this.#help}`, `# TYPE ${this.#name} counter`, ...values]
  }
}

function gauge(name: string, help: string, value: number): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${name} ${value}`]
}

function shown(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
