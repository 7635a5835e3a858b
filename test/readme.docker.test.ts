import { dockerGate, dockerSocket } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { runBlock } from './support/readme.ts'

describe.skipIf(!dockerGate())('README', () => {
  test('the block of docker-worker builds, checks and sweeps', async () => {
    const out = await runBlock('@sandbox/docker-worker', { DOCKER_HOST: `unix://${dockerSocket()}` })
    expect(out).toMatch(/container \[\]\s*$/)
  })
})
