import type { CallEvent } from '@sandbox/broker'
import type { TurnEvent } from '@sandbox/roundtable-plugin'
import { expect, test } from 'vitest'
import { Metrics } from './metrics.ts'

const turn = (more: Partial<TurnEvent>): TurnEvent => ({
  turnId: 't1',
  channel: 'room:a',
  speaker: { id: 'u', name: 'U' },
  state: 'admitted',
  driver: 'docker',
  durationMs: 0,
  ...more,
})

const call = (more: Partial<CallEvent>) =>
  ({
    callId: 'c',
    route: 'model',
    status: 200,
    reason: 'ok',
    requestBytes: 1,
    answerBytes: 1,
    durationMs: 1,
    droppedFields: [],
    ...more,
  }) as CallEvent

test('turns, calls, tokens and problems are counted in the text format of Prometheus', () => {
  const metrics = new Metrics({ modeOf: () => 'sealed' })
  metrics.onTurn(turn({}))
  metrics.onTurn(turn({ turnId: 't2' }))
  expect(metrics.text()).toContain('\nbot_turns_running 2\n')
  metrics.onTurn(turn({ state: 'settled', ok: true, durationMs: 1500 }))
  metrics.onTurn(
    turn({ turnId: 't2', state: 'settled', ok: false, category: 'timeout', durationMs: 700_000 }),
  )
  metrics.onCall(call({ model: 'gpt "x"\n', usage: { inputTokens: 7, outputTokens: 3 } }))
  metrics.onCall(call({ route: 'tool', reason: 'not_found' }))
  metrics.onKeyProblem()
  const lines = metrics.text().split('\n')
  expect(lines).toEqual(
    expect.arrayContaining([
      '# TYPE bot_turns_total counter',
      'bot_turns_total{mode="sealed",outcome="ok"} 1',
      'bot_turns_total{mode="sealed",outcome="timeout"} 1',
      '# TYPE bot_turn_duration_seconds histogram',
      'bot_turn_duration_seconds_bucket{mode="sealed",le="1"} 0',
      'bot_turn_duration_seconds_bucket{mode="sealed",le="2"} 1',
      'bot_turn_duration_seconds_bucket{mode="sealed",le="600"} 1',
      'bot_turn_duration_seconds_bucket{mode="sealed",le="+Inf"} 2',
      'bot_turn_duration_seconds_sum{mode="sealed"} 701.5',
      'bot_turn_duration_seconds_count{mode="sealed"} 2',
      'bot_turns_running 0',
      'bot_calls_total{route="model",reason="ok"} 1',
      'bot_calls_total{route="tool",reason="not_found"} 1',
      'bot_tokens_total{model="gpt \\"x\\"\\n",direction="input"} 7',
      'bot_tokens_total{model="gpt \\"x\\"\\n",direction="output"} 3',
      'bot_key_file_problems_total 1',
    ]),
  )
  for (const line of lines.filter((each) => each !== '')) {
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="([^"\\\n]|\\.)*",?)+\})? [0-9.]+)$/)
  }
})

test('no label holds a channel, a speaker or a key', () => {
  const metrics = new Metrics({ modeOf: () => undefined })
  metrics.onTurn(
    turn({ channel: 'room:secret', speaker: { id: 'u-secret', name: 'Secret' }, state: 'settled' }),
  )
  metrics.onCall(
    call({ fingerprint: 'f-secret', scope: { channel: 'room:secret', speaker: { id: 'u', name: 'n' } } }),
  )
  expect(metrics.text()).not.toContain('secret')
})
