import type { Attributes, Context, Histogram, Meter, Tracer } from '@opentelemetry/api'
import type { CallEvent } from '../engine/call/call-event.ts'
import { type CallShape, shapeOf } from './attributes.ts'

/** Where calls are told, and what the host adds. */
export interface CallTelemetryOptions {
  /** Gets one span per call: `trace.getTracer('my-bot')`. Omitted = no spans. */
  readonly tracer?: Tracer
  /** Gets durations and token counts: `metrics.getMeter('my-bot')`. Omitted = no metrics. */
  readonly meter?: Meter
  /** `gen_ai.provider.name`, such as `openai` or `azure.ai.openai`. Omitted = `anthropic` for that family, else `openai`. */
  readonly provider?: string | ((event: CallEvent) => string)
  /** The span that a call's span belongs to. Omitted = none: each is the root of a trace. */
  readonly parentOf?: (event: CallEvent) => Context | undefined
  /**
   * Attributes for the call's span, such as a hash of the channel. None of the scope is told unless this says so.
   */
  readonly attributesOf?: (event: CallEvent) => Attributes
  /** Also under the names before `gen_ai.client.inference.*`, which most dashboards know. Omitted = true. */
  readonly olderNames?: boolean
}

// SpanKind and SpanStatusCode of the API, which is a peer: only its types are here.
const INTERNAL = 0
const CLIENT = 2
const ERROR = 2

/**
 * Tells OpenTelemetry about calls, in the words of its GenAI conventions: give what it returns to a broker as
 * `onCall`. A call of a model is a client span `chat {model}`, one of a tool `execute_tool {name}`; worker messages
 * and unknown routes are told to nobody. No content, and no key, can be in them: events have none.
 */
export function callTelemetry(options: CallTelemetryOptions): (event: CallEvent) => void {
  const { tracer, meter, provider, parentOf, attributesOf, olderNames = true } = options
  const instruments = meter && makeInstruments(meter)
  const providerOf = typeof provider === 'function' ? provider : () => provider
  return (event) => {
    const own = event.name?.startsWith('anthropic') === true ? 'anthropic' : 'openai'
    const shape = shapeOf(event, { provider: providerOf(event) ?? own })
    if (shape === undefined) return
    if (instruments !== undefined && shape.kind === 'inference') {
      measure(instruments, { event, shape, olderNames })
    }
    if (tracer === undefined) return
    const endMs = Date.now()
    const span = tracer.startSpan(
      shape.title,
      {
        kind: shape.kind === 'inference' ? CLIENT : INTERNAL,
        startTime: endMs - event.durationMs,
        attributes: { ...shape.common, ...shape.own, ...attributesOf?.(event) },
        root: parentOf === undefined,
      },
      parentOf?.(event),
    )
    if (event.reason !== 'ok') span.setStatus({ code: ERROR, message: event.reason })
    span.end(endMs)
  }
}

/** All in seconds or tokens. */
interface Instruments {
  readonly duration: Histogram
  readonly olderDuration: Histogram
  readonly firstChunk: Histogram
  readonly input: Histogram
  readonly output: Histogram
  readonly olderTokens: Histogram
}

const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92]
const TOKENS = [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864]

function makeInstruments(meter: Meter): Instruments {
  const seconds = (name: string, description: string) =>
    meter.createHistogram(name, { unit: 's', description, advice: { explicitBucketBoundaries: SECONDS } })
  const tokens = (name: string, description: string) =>
    meter.createHistogram(name, {
      unit: '{token}',
      description,
      advice: { explicitBucketBoundaries: TOKENS },
    })
  return {
    duration: seconds('gen_ai.client.inference.duration', 'Time of a model call, waiting included.'),
    olderDuration: seconds('gen_ai.client.operation.duration', 'Time of a model call, waiting included.'),
    firstChunk: seconds('gen_ai.client.inference.time_to_first_chunk', 'Time to the first byte of a stream.'),
    input: tokens('gen_ai.client.inference.usage.input_tokens', 'Tokens that were read.'),
    output: tokens('gen_ai.client.inference.usage.output_tokens', 'Tokens that were written.'),
    olderTokens: tokens('gen_ai.client.token.usage', 'Tokens that were read or written.'),
  }
}

function measure(
  instruments: Instruments,
  { event, shape, olderNames }: { event: CallEvent; shape: CallShape; olderNames: boolean },
): void {
  const { common } = shape
  const { usage, firstByteMs, durationMs } = event
  instruments.duration.record(durationMs / 1000, common)
  if (olderNames) instruments.olderDuration.record(durationMs / 1000, common)
  if (event.streamed === true && firstByteMs !== undefined) {
    instruments.firstChunk.record(firstByteMs / 1000, common)
  }
  for (const [type, count] of [
    ['input', usage?.inputTokens],
    ['output', usage?.outputTokens],
  ] as const) {
    if (count === undefined) continue
    instruments[type].record(count, common)
    if (olderNames) instruments.olderTokens.record(count, { ...common, 'gen_ai.token.type': type })
  }
}
