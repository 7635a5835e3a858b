import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DriverError } from '../../errors.ts'
import type { WorkerLimits } from '../../options.ts'
import { checkWorkerSpec, resolveDockerOptions } from '../../resolve-options.ts'
import { sealedCreateBody } from './sealed-spec.ts'

/** Everything of a body that may follow the input, and nothing else. Paths of JSON, `*` for the place in a list. */
const TABLE = [
  'HostConfig.Memory',
  'HostConfig.MemorySwap',
  'HostConfig.Mounts.0.Source',
  'HostConfig.Mounts.1.ReadOnly',
  'HostConfig.Mounts.1.Source',
  'HostConfig.NanoCpus',
  'HostConfig.PidsLimit',
  'HostConfig.SecurityOpt.1',
  'HostConfig.Tmpfs./tmp',
  'HostConfig.Ulimits.0.Hard',
  'HostConfig.Ulimits.0.Soft',
  'HostConfig.Ulimits.2.Hard',
  'HostConfig.Ulimits.2.Soft',
]

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })
const word = fc.string({ unit: fc.constantFrom(...'abcXYZ019._-'), minLength: 8, maxLength: 64 })
const path = word.map((name) => `/srv/x${name}`)
const limits: fc.Arbitrary<Required<WorkerLimits>> = fc.record({
  memoryBytes: fc.integer({ min: 2 ** 26, max: 2 ** 45 }),
  cpus: fc.double({ min: 0.01, max: 4096, noNaN: true }),
  pids: fc.integer({ min: 8, max: 1_000_000 }),
  openFiles: fc.integer({ min: 32, max: 1_000_000 }),
  fileBytes: fc.integer({ min: 2 ** 20, max: 2 ** 45 }),
  tmpBytes: fc.integer({ min: 2 ** 20, max: 2 ** 45 }),
})
const input = fc.record({
  worker: fc
    .record({
      workerId: hex(16),
      channelHash: hex(64),
      epoch: word,
      runDir: path,
      workspaceReadOnly: fc.boolean(),
    })
    .chain((spec) => path.map((other) => ({ ...spec, workspaceDir: `${other}-work` }))),
  installId: word,
  imageId: hex(64).map((id) => `sha256:${id}`),
  runtime: fc.constantFrom('node' as const, 'bun' as const),
  user: fc.record({
    uid: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
    gid: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  }),
  limits,
  network: fc.constantFrom('none' as const, 'loopback' as const),
  program: fc.option(fc.array(fc.string(), { minLength: 1 }), { nil: undefined }),
})

/** Every leaf of a JSON value, by its path. */
function leaves(value: unknown, at = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) return new Map([[at, value]])
  const all = Object.entries(value).flatMap(([key, inner]) => [
    ...leaves(inner, at === '' ? key : `${at}.${key}`),
  ])
  return new Map(all.length > 0 ? all : [[at, Array.isArray(value) ? '[]' : '{}']])
}

const hostConfig = (from: Parameters<typeof sealedCreateBody>[0]) =>
  leaves({ HostConfig: sealedCreateBody(from).HostConfig })

describe('sealedCreateBody', () => {
  test('DD-01 whatever the input, HostConfig differs only where the table says', () => {
    const build = ({ program, ...rest }: typeof input extends fc.Arbitrary<infer T> ? T : never) =>
      hostConfig(program === undefined ? rest : { ...rest, program })
    fc.assert(
      fc.property(input, input, (one, other) => {
        const [first, second] = [build(one), build(other)]
        expect([...first.keys()]).toEqual([...second.keys()])
        const differ = [...first].filter(([key, value]) => second.get(key) !== value).map(([key]) => key)
        expect(differ.filter((key) => !TABLE.includes(key))).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  test('DD-01 what the table lets through is what was given, and nothing is added to it', () => {
    fc.assert(
      fc.property(input, ({ program: _, ...given }) => {
        const found = Object.fromEntries(hostConfig(given))
        expect(found).toMatchObject({
          'HostConfig.Mounts.0.Source': given.worker.runDir,
          'HostConfig.Mounts.0.ReadOnly': true,
          'HostConfig.Mounts.1.Source': given.worker.workspaceDir,
          'HostConfig.Mounts.1.ReadOnly': given.worker.workspaceReadOnly,
          'HostConfig.Memory': given.limits.memoryBytes,
          'HostConfig.MemorySwap': given.limits.memoryBytes,
          'HostConfig.PidsLimit': given.limits.pids,
          'HostConfig.Tmpfs./tmp': `rw,noexec,nosuid,nodev,mode=1777,size=${given.limits.tmpBytes}`,
          'HostConfig.Privileged': false,
          'HostConfig.NetworkMode': 'none',
        })
      }),
    )
  })

  test('fields that nobody knows reach nothing', () => {
    const strange = fc.dictionary(
      fc.constantFrom('Privileged', 'HostConfig', 'CapAdd', 'Binds', 'x'),
      fc.anything(),
    )
    fc.assert(
      fc.property(input, strange, ({ program: _, ...given }, more) => {
        const loaded = {
          ...more,
          ...given,
          worker: { ...more, ...given.worker },
          limits: { ...more, ...given.limits },
        }
        expect(sealedCreateBody(loaded)).toEqual(sealedCreateBody(given))
      }),
    )
  })
})

const GOOD = {
  image: 'img:1',
  installId: 'install-1',
  user: { uid: 1000, gid: 1000 },
  engineSocket: '/run/docker.sock',
}
const SPEC = {
  workerId: '0'.repeat(16),
  channelHash: '0'.repeat(64),
  epoch: 'e',
  runDir: '/srv/r',
  workspaceDir: '/srv/w',
}

/** Control characters, long ones, wrong types: nothing of it is any field's value. */
const bad = fc.oneof(
  fc
    .tuple(word, fc.constantFrom('\0', '\n', '\x1b[2J', '\x7f'))
    .map(([text, control]) => `/${text}${control}`),
  fc.constant('x'.repeat(5000)),
  fc.constantFrom<unknown>(
    null,
    true,
    {},
    [],
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    0,
    1e300,
    1n,
    () => 1,
  ),
)

describe('bad input', () => {
  test.each([
    'image',
    'installId',
    'engineSocket',
    'user.uid',
    'user.gid',
    'limits.memoryBytes',
    'limits.cpus',
    'network',
  ])('a bad %s is refused with its name', (field) =>
    refusedByName(
      field,
      (value) => resolveDockerOptions(put(GOOD, field, value) as never),
      'options_invalid',
    ),
  )
  test.each(['limits.pids', 'limits.openFiles', 'limits.fileBytes', 'limits.tmpBytes'])(
    'a bad %s is refused with its name',
    (field) =>
      refusedByName(
        field,
        (value) => resolveDockerOptions(put(GOOD, field, value) as never),
        'options_invalid',
      ),
  )
  test.each(['workerId', 'channelHash', 'epoch', 'runDir', 'workspaceDir'])(
    'a bad spec.%s is refused with its name',
    (field) =>
      refusedByName(
        `spec.${field}`,
        (value) => checkWorkerSpec(put(SPEC, field, value) as never),
        'spec_invalid',
      ),
  )
})

function put(into: object, field: string, value: unknown): object {
  const [top = '', below] = field.split('.')
  const held = (into as Record<string, object>)[top] ?? {}
  return { ...into, [top]: below === undefined ? value : { ...held, [below]: value } }
}

function refusedByName(field: string, attempt: (value: unknown) => unknown, code: string): void {
  fc.assert(
    fc.property(bad, (value) => {
      // Absent and null limits have their default.
      if (value === null && field.startsWith('limits.')) return
      try {
        attempt(value)
      } catch (error) {
        expect(DriverError.isInstance(error) ? error.code : error).toBe(code)
        expect(String(error)).toContain(`${field} `)
        return
      }
      expect.fail(`${field} took ${String(value)}`)
    }),
  )
}
