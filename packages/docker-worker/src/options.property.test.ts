import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '@sandbox/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createDockerDriver } from './host/docker-driver.ts'
import { buildImage } from './host/image/build-image.ts'
import { createProcessDriver } from './host/process-driver.ts'
import { createWarmPool } from './host/warm-pool.ts'
import { checkWorkerSpec } from './resolve-options.ts'
import { testUser } from './testing/worker-bench.ts'

const DOCKER = {
  image: 'sandbox-worker:latest',
  installId: 'install-1',
  user: { uid: 1000, gid: 1000 },
  engineSocket: '/nonexistent/docker.sock',
}
const PROCESS = { runRoot: '/srv/run', user: testUser() }
const BUILD = { engineSocket: '/nonexistent/docker.sock' }
const SPEC = {
  workerId: '0'.repeat(16),
  channelHash: 'a'.repeat(64),
  epoch: '1',
  runDir: '/srv/run',
  workspaceDir: '/srv/work',
}
const POOL = { driver: {}, prepare: () => {} }

/** Values that no field takes, but one that holds others may be empty. */
const WRONG = [
  null,
  true,
  [],
  'x\ny',
  'x\u0000y',
  '\u001b[31m',
  'é'.repeat(5000),
  -1,
  1.5,
  Number.NaN,
  Infinity,
  '',
]
const FLAGS = [null, 'yes', 1, {}]

type Field = readonly [what: string, field: string, values: readonly unknown[], named?: string]

/** Every field of every option object, with values that it must refuse; each is tried with all of them. */
const FIELDS: readonly (readonly [
  what: string,
  field: string,
  values: readonly unknown[],
  named?: string,
])[] = [
  ['docker', 'image', [...WRONG, {}, '-x', '--privileged', 'a b']],
  ['docker', 'installId', [...WRONG, {}, 'short', 'a/bcdefgh']],
  ['docker', 'user', [null, 'root', 0, [], {}], 'user.uid'],
  ['docker', 'user.uid', [...WRONG, {}, 0, 2 ** 31, '1000']],
  ['docker', 'user.gid', [...WRONG, {}, 0, 2 ** 31, '1000']],
  ['docker', 'engineSocket', [...WRONG, {}, 'docker.sock', '/', '/a/../b', '/a,b', 'tcp://x']],
  ['docker', 'limits', [null, 'x', 5, [], true]],
  ['docker', 'limits.memoryBytes', [...WRONG, {}, 2 ** 51, 64 * 2 ** 20 - 1]],
  ['docker', 'limits.cpus', [...WRONG.filter((value) => value !== 1.5), {}, 0, 4097]],
  ['docker', 'limits.pids', [...WRONG, {}, 7, 1_000_001]],
  ['docker', 'limits.openFiles', [...WRONG, {}, 31, 1_000_001]],
  ['docker', 'limits.fileBytes', [...WRONG, {}, 2 ** 20 - 1, 2 ** 51]],
  ['docker', 'limits.tmpBytes', [...WRONG, {}, 2 ** 20 - 1, 2 ** 51]],
  ['docker', 'runtime', [...WRONG, {}, 'sysbox', 'constructor']],
  ['docker', 'network', [...WRONG, {}, 'host', 'bridge']],
  ['docker', 'guest', [...WRONG, {}, 'root']],
  ['docker', 'scrub', [...FLAGS]],
  ['process', 'runRoot', [...WRONG, {}, undefined, 'run', '/', '/a/../b', '/a,b']],
  ['process', 'user', [null, 'root', 0, [], {}], 'user.uid'],
  ['process', 'user.uid', [...WRONG, {}, 0]],
  ['process', 'runtime', [...WRONG, {}]],
  ['process', 'bundle', [...WRONG, {}]],
  ['process', 'guest', [...WRONG, {}, 'root']],
  ['process', 'content', [...WRONG, {}, 'content']],
  ['process', 'scrub', [...FLAGS]],
  ['build', 'tag', [...WRONG, {}, '-x', 'a@sha256:0']],
  ['build', 'base', [...WRONG, {}, '-x']],
  ['build', 'engineSocket', [...WRONG, {}, 'docker.sock']],
  ['build', 'runtime', [...WRONG, {}]],
  ['build', 'bundle', [...WRONG, {}]],
  ['build', 'guest', [...WRONG, {}, 'root']],
  ['build', 'content', [...WRONG, {}]],
  ['build', 'onProgress', [...FLAGS]],
  ['pool', 'warm', [null, 'x', 5, [], true]],
  ['pool', 'warm.workers', [...WRONG, {}, 1001]],
  ['pool', 'warm.memoryBytes', [...WRONG, {}, 2 ** 51]],
  ['pool', 'warm.idleMs', [...WRONG, {}, 99, 86_400_001]],
  ['pool', 'startLimit', [...WRONG, {}, 0]],
  ['pool', 'refillMs', [...WRONG, {}, 60_001]],
  ['pool', 'retryMs', [...WRONG, {}, 0]],
  ['spec', 'workerId', [...WRONG, {}, undefined, 'XYZ', '0'.repeat(17)], 'spec.workerId'],
  ['spec', 'channelHash', [...WRONG, {}, undefined, 'general'], 'spec.channelHash'],
  [
    'spec',
    'epoch',
    [...WRONG.filter((value) => value !== -1), {}, undefined, 'a b', 'x'.repeat(65)],
    'spec.epoch',
  ],
  ['spec', 'runDir', [...WRONG, {}, undefined, 'run', '/', '/a,b'], 'spec.runDir'],
  ['spec', 'workspaceDir', [...WRONG, {}, undefined, 'work', '/', '/a,b', '/srv'], 'spec.workspaceDir'],
]

const MAKE: Readonly<Record<string, (options: never) => unknown>> = {
  docker: (options) => createDockerDriver(options),
  process: (options) => createProcessDriver(options),
  build: (options) => buildImage(options),
  pool: (options) => createWarmPool(options),
  spec: (options) => checkWorkerSpec(options),
}
const PLAIN: Readonly<Record<string, object>> = {
  docker: DOCKER,
  process: PROCESS,
  build: BUILD,
  pool: POOL,
  spec: SPEC,
}

/** The plain options with one field replaced; `a.b` is a field of a field, `warm` of a pool is its `limits`. */
function withField(what: string, path: string, value: unknown): object {
  const plain = PLAIN[what] as Record<string, unknown>
  const [head = '', inner] = path.split('.')
  const name = head === 'warm' ? 'limits' : head
  if (inner === undefined) return { ...plain, [name]: value }
  return { ...plain, [name]: { ...(plain[name] as object | undefined), [inner]: value } }
}

async function refusal(what: string, options: object): Promise<unknown> {
  try {
    await MAKE[what]?.(options as never)
    return undefined
  } catch (error) {
    return error
  }
}

describe('bad input is refused at construction, with the name of the field', () => {
  test.each(FIELDS)('%s %s', async (...row) => {
    const [what, field, values, named = field] = row as unknown as Field
    for (const value of values) {
      const shown = `${field} = ${JSON.stringify(value)?.slice(0, 40)}`
      const error = await refusal(what, withField(what, field, value))
      expect(error, shown).toMatchObject({ code: what === 'spec' ? 'spec_invalid' : 'options_invalid' })
      expect((error as Error).message, shown).toMatch(new RegExp(`^${named.replace('.', '\\.')} `))
      expect((error as Error).message.length, shown).toBeLessThan(300)
    }
  })

  test.each(['docker', 'process', 'build'])('%s options that are no object', async (what) => {
    for (const options of [null, 'x', 5, []]) {
      expect(await refusal(what, options as never)).toMatchObject({
        code: 'options_invalid',
        message: 'options has to be an object.',
      })
    }
  })

  test('whatever a field holds, a driver is made or the field is refused: no other error', async () => {
    const fields = FIELDS.filter(([what]) => what !== 'build' && what !== 'spec')
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...fields), fc.anything(), async ([what, field], value) => {
        const error = await refusal(what, withField(what, field, value))
        if (error !== undefined) expect(error).toMatchObject({ code: 'options_invalid' })
      }),
      { numRuns: 500 },
    )
  })
})

test.each([
  ['docker', 'engineSocket'],
  ['process', 'runRoot'],
  ['build', 'engineSocket'],
  ['spec', 'runDir'],
  ['spec', 'workspaceDir'],
])('%s %s that is a link is refused with its name', async (what, field) => {
  using dir = tempDir()
  const link = join(dir.path, 'link')
  mkdirSync(join(dir.path, 'real'))
  symlinkSync(join(dir.path, 'real'), link)
  const error = await refusal(what, withField(what, field, link))
  expect((error as Error).message).toMatch(new RegExp(`^(spec\\.)?${field} is a link`))
})
