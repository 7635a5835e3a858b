import { dockerGate, dockerSocket } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { operatorDir } from './operator-kit.ts'
import { runDemo } from './run-demo.ts'

describe.skipIf(!dockerGate())('an operator’s bot on an engine', () => {
  test('doctor starts a worker of each mode behind its walls, and finds them well', async () => {
    const speakers = [{ id: 'u-ann', name: 'Ann' }]
    using place = operatorDir(
      {
        workers: { engineSocket: dockerSocket() },
        providers: {
          claude: { api: 'anthropic', url: 'http://127.0.0.1:65534', model: 'm', allowHttp: true },
        },
        channels: { 'room:a': { mode: 'sealed', speakers }, 'room:b': { mode: 'pi', speakers } },
      },
      [{ channel: 'room:*', key: 'env:K' }],
    )
    const args = ['doctor', '--config', place.config, '--json']
    await using doctor = runDemo(args, { env: { K: 'sk-k-0123456789' } })
    expect(await doctor.exited).toBe(1)
    const rows = JSON.parse(doctor.output()) as { id: string; state: string; found: string }[]
    expect(rows.filter(({ state }) => state !== 'ok').map(({ id }) => id)).toEqual(['provider claude'])
    expect(rows.find(({ id }) => id === 'worker-sealed')?.found).toMatch(
      /^answered a message in \d+ ms \(container\)$/,
    )
    expect(rows.find(({ id }) => id === 'worker-pi')?.found).toMatch(
      /^the Pi agent was ready in \d+ ms \(container\)$/,
    )
  }, 120_000)
})
