import { dockerGate, dockerSocket } from '@sandbox/testing'
import { describe, expect, it } from 'vitest'
import { runCheck } from './check.ts'
import { openCheckBot } from './check-command.ts'

describe.skipIf(!dockerGate())('with a container engine', () => {
  it('the whole plan in real containers: every row as expected', async () => {
    const engineSocket = dockerSocket() ?? ''
    const report = await runCheck({
      rounds: 3,
      openBot: (options) => openCheckBot({ driver: 'docker', engineSocket }, options, () => {}),
    })
    expect(report.rows.filter(({ ok }) => !ok)).toEqual([])
    expect(report.ok).toBe(true)
    expect(report.rows.every(({ driver }) => driver === 'docker')).toBe(true)
    const attempts = report.rows.flatMap((row) => row.attempts ?? [])
    expect(attempts.map(({ attempt }) => attempt)).toContain('service_directly')
  }, 300_000)
})
