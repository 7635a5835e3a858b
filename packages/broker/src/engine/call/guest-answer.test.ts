import { expect, test } from 'vitest'
import type { CallReason } from './call-event.ts'
import { refusalAnswer } from './guest-answer.ts'
import { CallRefusal } from './refusal.ts'

const decode = (body: Uint8Array) => JSON.parse(new TextDecoder().decode(body)).error

/** Reason, status, code, whether the guest is told not to retry. A change here is a change of the wire. */
const PINNED: [Exclude<CallReason, 'ok'>, number, string, boolean][] = [
  ['request_invalid', 400, 'request_invalid', true],
  ['not_found', 404, 'not_found', true],
  ['header_refused', 403, 'header_refused', true],
  ['credential_refused', 403, 'credential_refused', true],
  ['host_refused', 403, 'host_refused', true],
  ['turn_over', 410, 'turn_over', true],
  ['nonce_refused', 410, 'turn_over', true],
  ['aborted', 410, 'turn_over', true],
  ['busy', 429, 'busy', false],
  ['budget_spent', 429, 'budget_spent', true],
  ['body_too_large', 413, 'body_too_large', true],
  ['body_invalid', 400, 'body_invalid', true],
  ['input_refused', 400, 'input_refused', true],
  ['credential_missing', 502, 'no_credential', true],
  ['credential_error', 502, 'call_failed', true],
  ['credential_invalid', 502, 'call_failed', true],
  ['upstream_network', 502, 'upstream_failed', false],
  ['upstream_redirect', 502, 'upstream_failed', true],
  ['upstream_status', 502, 'upstream_failed', true],
  ['upstream_invalid', 502, 'upstream_failed', false],
  ['reflection', 502, 'call_failed', true],
  ['tool_failed', 502, 'tool_failed', true],
  ['timeout', 502, 'timeout', false],
  ['internal', 502, 'call_failed', true],
  ['worker_refused', 403, 'worker_refused', true],
  ['hello_invalid', 400, 'hello_invalid', true],
  ['protocol_mismatch', 426, 'protocol_mismatch', true],
  ['second_hello', 409, 'second_hello', true],
  ['worker_over', 410, 'worker_over', true],
  ['no_turn', 408, 'no_turn', false],
  ['turn_taken', 409, 'turn_taken', true],
  ['turn_unknown', 409, 'turn_unknown', true],
  ['result_refused', 409, 'result_refused', true],
]

test.each(PINNED)('decision 15 and W-11 %s is %i %s', (reason, status, code, final) => {
  const answer = refusalAnswer(new CallRefusal(reason))
  expect(answer.status).toBe(status)
  expect(answer.headers['x-should-retry']).toBe(final ? 'false' : undefined)
  expect(decode(answer.body)).toEqual({
    code,
    message: expect.stringMatching(/^[A-Z].*\.$|sandbox-worker build/),
  })
})

test('CS-10 and SB-30 a cause stays on the host', () => {
  const answer = refusalAnswer(new CallRefusal('internal', { cause: new TypeError('detail of the host') }))
  expect(new TextDecoder().decode(answer.body)).not.toContain('detail')
})

test('PB-22 words that clients match on stand in place of ours', () => {
  const answer = refusalAnswer(
    new CallRefusal('input_refused', { wording: 'messages.0: no', problem: 'hidden' }),
  )
  expect(decode(answer.body)).toEqual({ code: 'input_refused', message: 'messages.0: no' })
})
