import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe } from 'vitest'
import { createProcessDriver } from '../src/host/process-driver.ts'
import { TINY_GUEST } from '../src/testing/tiny-guest.ts'
import { testUser } from '../src/testing/worker-bench.ts'
import { driverBehaviour } from './driver-behaviour.ts'

describe('every driver: plain processes', () => {
  driverBehaviour({
    open: (place, options = {}) => {
      const runRoot = join(place.root, 'root')
      mkdirSync(runRoot, { recursive: true, mode: 0o711 })
      const bundle = join(place.root, 'guest.mjs')
      writeFileSync(bundle, TINY_GUEST, { mode: 0o600 })
      return createProcessDriver({ runRoot, user: testUser(), bundle, ...options })
    },
    left: async (place) => {
      const notes = join(place.root, 'root', 'process', 'workers')
      return existsSync(notes) ? readdirSync(notes) : []
    },
  })
})
