import { expect, test } from 'vitest'
import { type FixtureTree, fixtureTree } from './fixture-tree.ts'
import { checkImports } from './imports.ts'
import { checkNames } from './name-fences.ts'
import { readWorkspaces } from './source-tree.ts'

async function rulesBroken(tree: FixtureTree): Promise<string[]> {
  const found = [...(await checkImports(tree.root)), ...checkNames(readWorkspaces(tree.root))]
  return [...new Set(found.map((one) => one.rule))].sort()
}

const worker = 'packages/docker-worker/src'
const plugin = 'packages/roundtable-plugin/src'

/** Imports that must stay possible. */
const allowed: [file: string, code: string][] = [
  ['packages/protocol/src/a.ts', "import { x } from 'typebox'"],
  ['packages/broker/src/a.ts', "import { x } from '@sandbox/credential-scope'\nimport 'undici/index.js'"],
  ['packages/broker/src/mcp/client-link.ts', "import { Client } from '@modelcontextprotocol/client'"],
  ['packages/credential-scope/src/a.ts', "import { randomBytes } from 'node:crypto'"],
  ['packages/credential-scope/src/sources/a.ts', "import { statSync } from 'node:fs'\nimport '../a.ts'"],
  ['packages/pi-broker/src/a.ts', "import { x } from '@sandbox/broker/engine'"],
  [`${worker}/host/container/docker-client.ts`, "import Docker from 'dockerode'"],
  [`${worker}/guest/shared/b.ts`, "import http from 'node:http'\nimport { x } from '@sandbox/protocol'"],
  [`${worker}/guest/sealed/main.ts`, "import { x } from '../shared/b.ts'"],
  [`${worker}/guest/sealed/a.test.ts`, "import { x } from '../../testing/fake.ts'"],
  [`${worker}/host/a.test.ts`, "import { x } from '@sandbox/testing'\nimport y from 'left-pad'"],
  [`${plugin}/defaults.ts`, "import { createDockerDriver } from '@sandbox/docker-worker'"],
  [`${plugin}/prechecks/defaults.ts`, "import { createDockerDriver } from '@sandbox/docker-worker'"],
  [
    `${plugin}/runtime/a.ts`,
    "import type { ChannelKey } from '../host-contract.ts'\nimport type { Driver } from '@sandbox/docker-worker'",
  ],
]

/** One planted violation a row, and the rule that must see it. */
const planted: [rule: string, file: string, code: string][] = [
  ['table: @sandbox/protocol', 'packages/protocol/src/a.ts', "import { x } from '@sandbox/credential-scope'"],
  ['table: @sandbox/credential-scope', 'packages/credential-scope/src/a.ts', "import x from 'left-pad'"],
  ['table: @sandbox/broker', 'packages/broker/src/a.ts', "import type { X } from '@sandbox/docker-worker'"],
  [
    'table: @sandbox/broker',
    'packages/broker/src/a.ts',
    "export type X = import('@sandbox/docker-worker').X",
  ],
  ['table: @sandbox/docker-worker', `${worker}/a.ts`, "import { x } from '@sandbox/credential-scope'"],
  ['table: @sandbox/docker-worker', `${worker}/a.ts`, "export const x = await import('@sandbox/broker')"],
  ['table: @sandbox/docker-worker', `${worker}/a.ts`, "export { x } from '@sandbox/broker'"],
  ['table: @sandbox/roundtable-plugin', `${plugin}/a.ts`, "import { x } from 'hono'"],
  ['table: @sandbox/roundtable-plugin', `${plugin}/a.ts`, "import { x } from '@sandbox/broker/engine'"],
  ['table: @sandbox/testing', 'packages/testing/src/a.ts', "import { x } from '@sandbox/protocol'"],
  ['packages-by-name', 'packages/broker/src/a.ts', "import { x } from '../../protocol/src/index.ts'"],
  [
    'mcp-client-behind-its-entry',
    'packages/broker/src/a.ts',
    "import { Client } from '@modelcontextprotocol/client'",
  ],
  ['mcp-client-behind-its-entry', 'packages/broker/src/a.ts', "import { mcpServer } from './mcp/index.ts'"],
  ['no-cycles', 'packages/broker/src/c.ts', "import type { B } from './b.ts'"],
  ['resolvable', 'packages/broker/src/a.ts', "import { x } from '@sandbox/protocol/deep'"],
  ['no-fakes-in-src', 'packages/broker/src/a.ts', "import { x } from '@sandbox/testing'"],
  ['no-fakes-in-src', `${worker}/a.ts`, "import { x } from './testing/fake.ts'"],
  ['no-tests-in-src', 'packages/broker/src/a.ts', "import { x } from './b.test.ts'"],
  ['pure', 'packages/protocol/src/a.ts', "import { readFileSync } from 'node:fs'"],
  ['pure', 'packages/credential-scope/src/a.ts', "import http from 'http'"],
  ['pure-knows-no-sources', 'packages/credential-scope/src/a.ts', "import './sources/index.ts'"],
  [
    'engine-knows-no-broker',
    'packages/broker/src/engine/a.ts',
    "import type { X } from '../sealed-broker.ts'",
  ],
  ['pi-broker-on-engine-only', 'packages/pi-broker/src/a.ts', "import { x } from '@sandbox/broker'"],
  ['dockerode-behind-one-file', `${worker}/host/a.ts`, "import type { X } from 'dockerode'"],
  ['host-knows-no-guest', `${worker}/host/a.ts`, "import { x } from '../guest/shared/a.ts'"],
  ['guest-knows-no-host', `${worker}/guest/sealed/a.ts`, "import type { X } from '../../host/a.ts'"],
  ['guest-knows-no-other-guest', `${worker}/guest/sealed/a.ts`, "import { x } from '../pi/main.ts'"],
  ['guest-knows-no-other-guest', `${worker}/guest/shared/a.ts`, "import { x } from '../pi/main.ts'"],
  ['guest-brings-nothing', `${worker}/guest/sealed/a.ts`, "import Docker from 'dockerode'"],
  ['runtime-knows-no-chat', `${plugin}/runtime/a.ts`, "import { x } from '../claim/b.ts'"],
  [
    'runtime-knows-no-chat',
    `${plugin}/runtime/a.ts`,
    "import type { ChannelKey, ChatSurface } from '../host-contract.ts'",
  ],
  [
    'only-defaults-constructs',
    `${plugin}/runtime/a.ts`,
    "import { openSealedBroker } from '@sandbox/broker'",
  ],
  ['only-defaults-constructs', `${plugin}/claim/a.ts`, "import * as w from '@sandbox/docker-worker'"],
  ['only-defaults-constructs', `${plugin}/a.ts`, "export const b = () => import('@sandbox/broker')"],
  [
    'only-defaults-constructs',
    `${plugin}/prechecks/a.ts`,
    "import { precheckBroker } from '@sandbox/broker/mcp'",
  ],
  ['prechecks-behind-their-entry', `${plugin}/a.ts`, "import { x } from './prechecks/b.ts'"],
  ['safe-fetch-is-a-leaf', `${plugin}/safe-fetch/a.ts`, "import { x } from '../index.ts'"],
]

/** What the planted lines point at. */
const targets: [file: string, code: string][] = [
  ['packages/broker/src/b.ts', "import type { C } from './c.ts'\nexport type B = C"],
  ['packages/broker/src/c.ts', 'export type C = 1'],
  ['packages/broker/src/b.test.ts', 'export const x = 1'],
  ['packages/broker/src/mcp/index.ts', 'export const x = 1'],
  ['packages/broker/src/sealed-broker.ts', 'export type X = 1'],
  ['packages/protocol/src/deep.ts', 'export const x = 1'],
  [`${worker}/testing/fake.ts`, 'export const x = 1'],
  [`${worker}/guest/shared/a.ts`, 'export const x = 1'],
  [`${worker}/guest/pi/main.ts`, 'export const x = 1'],
  [`${worker}/host/a.ts`, 'export type X = 1'],
  [`${plugin}/claim/b.ts`, 'export const x = 1'],
  [`${plugin}/prechecks/b.ts`, 'export const x = 1'],
  [`${plugin}/host-contract.ts`, 'export type ChannelKey = string; export type ChatSurface = 1'],
]

test('guard A is content with a tree that keeps the table', async () => {
  using tree = fixtureTree()
  for (const [file, code] of [...targets, ...allowed]) tree.write(file, `${code}\n`)
  expect(await rulesBroken(tree)).toEqual([])
})

test.each(planted)('guard A sees a planted violation of %s in %s: %s', async (rule, file, code) => {
  using tree = fixtureTree()
  for (const [target, text] of targets) tree.write(target, `${text}\n`)
  tree.write(file, `${code}\n`)
  expect(await rulesBroken(tree)).toContain(rule)
})

test('guard A reads declarations with using, and every file on disk', async () => {
  using tree = fixtureTree()
  const code = "import type { X } from '@sandbox/docker-worker'\nexport const f = () => { using a = g() }\n"
  tree.write('packages/broker/src/a.ts', code)
  expect(await rulesBroken(tree)).toEqual(['table: @sandbox/broker'])
})
