import { buildImage, createDockerDriver } from '@sandbox/docker-worker'
import { chatText, dockerGate, scriptedUpstream } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import type { TurnEvent } from '../src/runtime/turn-state.ts'
import { ownRoots, userOptions } from './account.ts'
import { containersOf, ENGINE } from './engine.ts'
import { startHost } from './killed-host.ts'
import { ann, runDirs } from './runtime-kit.ts'

const IMAGE = `sandbox-test-plugin:${process.versions.bun === undefined ? 'node' : 'bun'}`
const KEY = 'sk-test-0123456789abcdef'

/** The stages of a turn from its hand-over on; those before it are in docker-worker's own suite. */
const STAGES: readonly { what: string; state: TurnEvent['state']; afterMs: number; warm?: boolean }[] = [
  { what: 'bind', state: 'bound', afterMs: 0 },
  { what: 'bind on a worker that waited', state: 'bound', afterMs: 0, warm: true },
  { what: 'deliver', state: 'answering', afterMs: 0 },
  { what: 'deliver, the turn being on its way', state: 'answering', afterMs: 5 },
  { what: 'settle, before the removal', state: 'settling', afterMs: 0 },
  { what: 'settle, in the middle of the removal', state: 'settling', afterMs: 30 },
  { what: 'the end of settle, the next worker being started', state: 'settled', afterMs: 600, warm: true },
]

/** How long a person waits at most for a channel whose host was killed and started again. */
const BACK_MS = 5_000

describe.skipIf(!dockerGate())('a host that is killed in a turn, from its hand-over on', () => {
  beforeAll(async () => {
    await buildImage({ tag: IMAGE, engineSocket: ENGINE })
  }, 180_000)

  test.each(STAGES)(
    'T51 [worker:removed-after-crash] SIGKILL at $what: started again, nothing is left and the channel answers',
    async ({ state, afterMs, warm = false }) => {
      using roots = ownRoots()
      // The dead host's worker is not answered: what it asked for must not end the turn before the kill.
      let dead = state !== 'settling' && state !== 'settled'
      await using upstream = await scriptedUpstream(() => (dead ? new Promise(() => {}) : chatText('hi')))
      const options = {
        image: IMAGE,
        engineSocket: ENGINE,
        runRoot: roots.runRoot,
        workspaceRoot: roots.workspaceRoot,
        model: 'm',
        modelUrl: `${upstream.url}/v1/chat/completions`,
        allowHttp: true,
        ...(warm ? {} : { warm: false as const }),
        ...userOptions,
      }
      const host = startHost({ ...options, apiKey: KEY, killAt: { state, afterMs } })
      expect(await host.ended).toEqual([null, 'SIGKILL'])
      dead = false
      if (state !== 'settled' && afterMs < 30) expect(runDirs(roots.runRoot)).toHaveLength(1)

      let installId = ''
      const runtime = new SandboxRuntime({
        ...options,
        warm: false,
        apiKey: () => KEY,
        driver: (install) => {
          installId = install.installId
          return createDockerDriver({ image: IMAGE, installId, user: install.user, engineSocket: ENGINE })
        },
      })
      const back = (async () => {
        await runtime.start()
        expect(runDirs(roots.runRoot)).toEqual([])
        return runtime.runTurn('fake:1', ann, 'hello')
      })()
      const late = new Promise((_, reject) => setTimeout(() => reject(new Error('late')), BACK_MS).unref())
      try {
        expect(await Promise.race([back, late])).toEqual({ ok: true, text: 'hi' })
      } finally {
        await back.catch(() => {})
        await runtime.dispose()
      }
      expect([await containersOf(installId), runDirs(roots.runRoot)]).toEqual([[], []])
    },
    60_000,
  )
})
