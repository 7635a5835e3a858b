import { randomBytes } from 'node:crypto'
import { dockerGate } from '@sandbox/testing'
import { beforeAll, describe } from 'vitest'
import { connectEngine } from '../src/host/container/docker-client.ts'
import { createDockerDriver } from '../src/host/docker-driver.ts'
import { ENGINE, tinyImage } from '../src/testing/tiny-image.ts'
import { testUser } from '../src/testing/worker-bench.ts'
import { driverBehaviour } from './driver-behaviour.ts'

describe.skipIf(!dockerGate())('every driver: containers', () => {
  let image: string
  beforeAll(async () => {
    image = await tinyImage(ENGINE)
  }, 120_000)

  const installs = new Map<string, string>()
  driverBehaviour({
    open: (place, options = {}) => {
      const installId = `test-every-${randomBytes(6).toString('hex')}`
      installs.set(place.root, installId)
      return createDockerDriver({ image, installId, user: testUser(), engineSocket: ENGINE, ...options })
    },
    left: async (place) => {
      const engine = await connectEngine(ENGINE)
      return (await engine.list(installs.get(place.root))).map(({ id }) => id)
    },
  })
})
