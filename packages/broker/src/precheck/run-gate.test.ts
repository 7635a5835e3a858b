import { expect, test } from 'vitest'
import type { BrokerRequest } from '../engine/call/exchange.ts'
import { RunGate, type RunGateOptions } from './run-gate.ts'

test.each([
  () => {
    throw new TypeError('observer')
  },
  () => Promise.reject(new TypeError('observer')) as never,
])('W-27 a broken observer of a refused request breaks no run, and no process', async (onCall) => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => unhandled.push(reason)
  process.on('unhandledRejection', note)
  const run = {
    turnId: 't',
    scope: {},
    signal: new AbortController().signal,
  } as unknown as RunGateOptions['run']
  const handler = () => Promise.reject(new TypeError('not to be asked'))
  const gate = new RunGate({ handler, run, maxCalls: 0, worker: new Set(), onCall })
  const answer = await gate.handle({ target: '/model' } as BrokerRequest)
  answer.ended(true)
  await new Promise((done) => setImmediate(done))
  process.off('unhandledRejection', note)
  expect([answer.status, unhandled]).toEqual([429, []])
})
