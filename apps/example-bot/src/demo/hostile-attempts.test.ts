import { readFileSync } from 'node:fs'
import type { CallEvent } from '@sandbox/broker'
import {
  PROTOCOL_VERSION,
  SEALED_PLACEHOLDER,
  TURN_NONCE_HEADER,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
} from '@sandbox/protocol'
import { expect, it } from 'vitest'
import { ATTACK, HOSTILE_GUEST, missingEvents, readAttempts } from './hostile-attempts.ts'

const all = Object.entries(ATTACK)
const told = all.map(([name, { status }]) => `${name} ${status}`)

it('a guest that tells what is expected of every attempt is right', () => {
  const attempts = readAttempts(told.join('\n'), true)
  expect(attempts).toHaveLength(all.length)
  expect(attempts.every(({ ok }) => ok)).toBe(true)
})

it('one other status, one silence, or one line glued to another is wrong', () => {
  const wrong = (lines: readonly string[]) => readAttempts(lines.join('\n'), true).filter(({ ok }) => !ok)
  expect(wrong(told.with(3, 'no_nonce 200'))).toEqual([
    { attempt: 'no_nonce', expected: 410, status: 200, ok: false },
  ])
  expect(wrong(told.toSpliced(3, 1))).toEqual([{ attempt: 'no_nonce', expected: 410, ok: false }])
  expect(wrong([])).toHaveLength(all.length)
})

it('ways around the socket are looked at only where there is a wall', () => {
  const names = readAttempts('', false).map(({ attempt }) => attempt)
  expect(names).not.toContain('service_directly')
  expect(names).toContain('no_nonce')
})

it('the host must know of each refusal, as often as it was tried', () => {
  const events = all.flatMap(([, { status, reason }]) =>
    reason === undefined ? [] : [{ status, reason } as CallEvent],
  )
  expect(missingEvents(events)).toEqual([])
  const fewer = events.toSpliced(
    events.findIndex(({ reason }) => reason === 'nonce_refused'),
    1,
  )
  expect(missingEvents(fewer)).toHaveLength(1)
  expect(missingEvents([])).toHaveLength(events.length)
})

it('the hostile guest speaks the protocol of this version, and imports nothing that is not built in', () => {
  const source = readFileSync(HOSTILE_GUEST, 'utf8')
  for (const word of [SEALED_PLACEHOLDER, TURN_NONCE_HEADER, WORKER_NONCE_HEADER])
    expect(source).toContain(word)
  for (const path of ['hello', 'next', 'ack', 'result'] as const)
    expect(source).toContain(WORKER_ROUTES[path])
  expect(source).toContain(`protocol: ${PROTOCOL_VERSION},`)
  const imports = [...source.matchAll(/from '([^']+)'/g)].map(([, name]) => name)
  expect(imports.every((name) => name?.startsWith('node:'))).toBe(true)
  for (const name of Object.keys(ATTACK)) expect(source).toContain(`'${name}'`)
})
