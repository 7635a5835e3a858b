import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { describe, expect, test } from 'vitest'
import type { CallEvent } from '../engine/call/call-event.ts'
import { type CallTelemetryOptions, callTelemetry } from './call-telemetry.ts'

const EVENT: CallEvent = {
  callId: 'c-1',
  turnId: 't-1',
  scope: { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } },
  route: 'model',
  name: 'openai-chat',
  status: 200,
  reason: 'ok',
  upstreamStatus: 200,
  requestBytes: 100,
  answerBytes: 200,
  durationMs: 1500,
  model: 'gpt-x',
  streamed: true,
  firstByteMs: 250,
  droppedFields: ['user'],
  fingerprint: 'abcdef01',
  usage: { inputTokens: 10, outputTokens: 20, cachedTokens: 4, reasoningTokens: 7 },
}

/** Tells events to the official SDK and returns what would be exported. */
async function told(events: readonly CallEvent[], options: CallTelemetryOptions = {}) {
  const spans = new InMemorySpanExporter()
  const metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const tracers = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter: spans })] })
  const reader = new PeriodicExportingMetricReader({ exporter: metrics, exportIntervalMillis: 3_600_000 })
  const meters = new MeterProvider({ readers: [reader] })
  const onCall = callTelemetry({ tracer: tracers.getTracer('t'), meter: meters.getMeter('t'), ...options })
  for (const event of events) onCall(event)
  await tracers.forceFlush()
  await meters.forceFlush()
  const found = metrics.getMetrics().flatMap((one) => one.scopeMetrics.flatMap((scope) => scope.metrics))
  return {
    spans: spans.getFinishedSpans(),
    metrics: new Map(found.map((one) => [one.descriptor.name, one.dataPoints])),
  }
}

describe('OpenTelemetry', () => {
  test('a model call is a client span in the words of the GenAI conventions', async () => {
    const { spans } = await told([EVENT])
    expect(spans).toHaveLength(1)
    expect(spans[0]).toMatchObject({
      name: 'chat gpt-x',
      kind: SpanKind.CLIENT,
      status: { code: SpanStatusCode.UNSET },
    })
    expect(spans[0]?.attributes).toEqual({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-x',
      'gen_ai.request.stream': true,
      'gen_ai.response.time_to_first_chunk': 0.25,
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 20,
      'gen_ai.usage.cache_read.input_tokens': 4,
      'gen_ai.usage.reasoning.output_tokens': 7,
      'http.response.status_code': 200,
      'sandbox.call.id': 'c-1',
      'sandbox.turn.id': 't-1',
      'sandbox.call.request_bytes': 100,
      'sandbox.call.answer_bytes': 200,
    })
    expect(spans[0]?.duration[0]).toBe(1)
    expect(Math.round((spans[0]?.duration[1] ?? 0) / 1e6)).toBe(500)
  })

  test('nothing of the speaker, the channel or the key is told, unless the host adds it', async () => {
    const plain = JSON.stringify((await told([EVENT])).spans.map(({ attributes }) => attributes))
    for (const text of ['Ann', 'u-ann', 'web:room', 'abcdef01']) expect(plain).not.toContain(text)
    const { spans } = await told([EVENT], { attributesOf: (event) => ({ room: event.scope?.channel ?? '' }) })
    expect(spans[0]?.attributes).toMatchObject({ room: 'web:room' })
  })

  test('a failed call has an error type, and no numbers that it does not have', async () => {
    const { model: _model, usage: _usage, firstByteMs: _first, streamed: _streamed, ...rest } = EVENT
    const { spans, metrics } = await told([{ ...rest, name: 'anthropic', reason: 'upstream_network' }])
    expect(spans[0]).toMatchObject({
      name: 'chat',
      status: { code: SpanStatusCode.ERROR, message: 'upstream_network' },
      attributes: { 'error.type': 'upstream_network', 'gen_ai.provider.name': 'anthropic' },
    })
    expect(
      Object.keys(spans[0]?.attributes ?? {}).filter((name) => /usage|stream|chunk|model/.test(name)),
    ).toEqual([])
    expect([...metrics.keys()].sort()).toEqual([
      'gen_ai.client.inference.duration',
      'gen_ai.client.operation.duration',
    ])
  })

  test('durations are seconds, tokens are counted by kind, under both generations of names', async () => {
    const { metrics } = await told([EVENT, EVENT])
    const sums = (name: string) =>
      metrics
        .get(name)
        ?.map(({ value, attributes }) => [
          (value as { sum: number }).sum,
          (value as { count: number }).count,
          attributes['gen_ai.token.type'],
        ])
    expect(sums('gen_ai.client.inference.duration')).toEqual([[3, 2, undefined]])
    expect(sums('gen_ai.client.operation.duration')).toEqual([[3, 2, undefined]])
    expect(sums('gen_ai.client.inference.time_to_first_chunk')).toEqual([[0.5, 2, undefined]])
    expect(sums('gen_ai.client.inference.usage.input_tokens')).toEqual([[20, 2, undefined]])
    expect(sums('gen_ai.client.inference.usage.output_tokens')).toEqual([[40, 2, undefined]])
    expect(sums('gen_ai.client.token.usage')).toEqual([
      [20, 2, 'input'],
      [40, 2, 'output'],
    ])
    const latest = await told([EVENT], { olderNames: false })
    expect([...latest.metrics.keys()].filter((name) => !name.includes('inference'))).toEqual([])
    for (const points of metrics.values()) {
      for (const { attributes } of points) expect(JSON.stringify(attributes)).not.toContain('t-1')
    }
  })

  test('a tool is an execute_tool span; worker messages and unknown routes are told to nobody', async () => {
    const { spans, metrics } = await told([
      { ...EVENT, route: 'tool', name: 'lookup' },
      { ...EVENT, route: 'mcp', name: 'files/read' },
      { ...EVENT, route: 'worker', name: 'next' },
      { ...EVENT, route: 'unknown' },
    ])
    expect(spans.map(({ name, kind }) => [name, kind])).toEqual([
      ['execute_tool lookup', SpanKind.INTERNAL],
      ['execute_tool files/read', SpanKind.INTERNAL],
    ])
    expect(metrics.size).toBe(0)
  })

  test('a call belongs to the span that the host names', async () => {
    const spanContext = { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 }
    const parent = trace.setSpanContext(ROOT_CONTEXT, spanContext)
    const { spans } = await told([EVENT], { parentOf: () => parent, provider: 'azure.ai.openai' })
    expect(spans[0]?.spanContext().traceId).toBe(spanContext.traceId)
    expect(spans[0]?.parentSpanContext?.spanId).toBe(spanContext.spanId)
    expect(spans[0]?.attributes['gen_ai.provider.name']).toBe('azure.ai.openai')
  })

  test('without tracer and meter it does nothing', () => {
    expect(() => callTelemetry({})(EVENT)).not.toThrow()
  })
})
