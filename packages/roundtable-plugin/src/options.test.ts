import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownDir, userOptions } from '../test/account.ts'
import { createHost } from './host/index.ts'
import type { SandboxPlugin } from './host-contract.ts'
import { piSandbox } from './pi-plugin.ts'
import { sandbox } from './plugin.ts'

/** What setup says of an option; `taken` when it takes it. */
async function saidOf(make: (dir: string, option: object) => SandboxPlugin, option: object): Promise<string> {
  using dir = ownDir()
  try {
    const host = await createHost({ plugins: [make(dir.path, option)] })
    await host.stop()
    return 'taken'
  } catch (error) {
    return (error as Error).message
  }
}

const sealed = (dir: string, option: object) =>
  sandbox({
    runRoot: join(dir, 'r'),
    workspaceRoot: join(dir, 'w'),
    stateFile: join(dir, 's', 'channels.json'),
    model: 'm',
    modelUrl: 'https://models.example/v1/chat/completions',
    driver: 'process',
    ...userOptions,
    ...option,
  })
const pi = (dir: string, option: object) =>
  piSandbox({
    partyDir: join(dir, 'p'),
    stateFile: join(dir, 's', 'channels.json'),
    model: 'm',
    profiles: { default: {} },
    driver: 'process',
    ...userOptions,
    ...option,
  })

const WRONG = {
  string: [null, 5, true, {}, []],
  function: [null, 5, 'x', true, {}, []],
  list: [null, 5, 'x', true, {}],
  object: [null, 5, 'x', true, []],
  boolean: [null, 0, 'false', {}],
} as const
type Kind = keyof typeof WRONG

const BOTH: [string, Kind][] = [
  ['image', 'string'],
  ['engineSocket', 'string'],
  ['limits', 'object'],
  ['allowHttp', 'boolean'],
  ['tools', 'list'],
  ['mcp', 'list'],
  ['prompt', 'string'],
  ['keyContact', 'string'],
  ['onCall', 'function'],
  ['onTurn', 'function'],
  ['stateFile', 'string'],
  ['initialChannels', 'list'],
  ['provider', 'string'],
  ['explain', 'function'],
  ['admission', 'object'],
]
const PI: [string, Kind][] = [
  ['oauthToken', 'function'],
  ['judge', 'function'],
  ['memory', 'function'],
  ['forgetMemory', 'function'],
  ['profileOf', 'function'],
  ['onProgress', 'function'],
  ['attachments', 'object'],
  ['compaction', 'object'],
  ['setFields', 'object'],
]

test.each([
  ...BOTH.map(([name, kind]) => ['sandbox', name, kind, sealed] as const),
  ['sandbox', 'apiKey', 'function', sealed] as const,
  ...[...BOTH, ...PI].map(([name, kind]) => ['piSandbox', name, kind, pi] as const),
])(
  'RL-01 %s: %s of another kind is refused in setup, with its name and its kind',
  async (_, name, kind, make) => {
    for (const value of WRONG[kind]) {
      const is = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
      expect(await saidOf(make, { [name]: value })).toMatch(
        new RegExp(`^${name}: must be .*, and is ${is}\\.$`),
      )
    }
  },
)

test.each([['sandbox', sealed] as const, ['piSandbox', pi] as const])(
  'RL-01 %s: what is left out is as it was, a state file cannot be, and no slip in a name is a limit less',
  async (_, make) => {
    expect(await saidOf(make, { onCall: undefined, initialChannels: undefined, admission: false })).toBe(
      'taken',
    )
    expect(await saidOf(make, { stateFile: undefined })).toMatch(/^stateFile: must be .*, and is undefined/)
    const payer = make === sealed ? 'apiKey' : 'oauthToken'
    expect(await saidOf(make, { [payer]: undefined })).toMatch(/: must be a function \(left out, the host's/)
    expect(await saidOf(make, { admission: { perSpeakerMinut: 1 } })).toMatch(/"admission.perSpeakerMinute"/)
    expect(await saidOf(make, { initialChannel: [] })).toMatch(/closest one is "initialChannels"/)
  },
)

test('RL-01 piSandbox: how attachments are fetched has no other names', async () => {
  expect(await saidOf(pi, { attachments: { maxPixel: 1 } })).toMatch(/closest one is "attachments.maxPixels"/)
  expect(await saidOf(pi, { attachments: false })).toBe('taken')
})
