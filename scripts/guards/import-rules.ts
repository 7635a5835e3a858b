import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { IRegularForbiddenRuleType } from 'dependency-cruiser'
import { packageOf, TABLE, type WorkspaceRow } from './table.ts'

/** What a fence is built from: who may not reach what, and why. */
interface Fence {
  readonly name: string
  readonly why: string
  readonly from: IRegularForbiddenRuleType['from']
  readonly to: IRegularForbiddenRuleType['to']
}

const TESTS = ['\\.(test|test-d|bench)\\.ts$', '/test/', '/fuzz/']
const FAKES = ['/src/testing/', '/src/.+/testing/']
const BROKER = '^packages/broker/src/'
const SCOPE = '^packages/credential-scope/src/'
const WORKER = '^packages/docker-worker/src/'
const PLUGIN = '^packages/roundtable-plugin/src/'
const PI_AGENT = '(^|/)node_modules/@earendil-works/pi-coding-agent/'

/** The import table and the fences, in dependency-cruiser's form. */
export function importRules(root: string): IRegularForbiddenRuleType[] {
  const fences = [...TABLE.flatMap((row) => tableFences(root, row)), ...FENCES]
  return fences.map(({ name, why, from, to }) => ({ name, comment: why, severity: 'error', from, to }))
}

function tableFences(root: string, row: WorkspaceRow): Fence[] {
  const own = row.own.flatMap((entry) => entryFile(root, entry))
  const external = [...row.external, ...(row.peers ?? []), ...(row.bundled ?? [])].flatMap((name) => [
    `(^|/)node_modules/${name}/`,
    `(^|/)node_modules/@types/${name}/`,
    `^${name}(/|$)`,
  ])
  return [
    {
      name: `table: ${row.name}`,
      why: `${row.dir} may import only what its row in scripts/guards/table.ts names`,
      from: { path: `^${row.dir}/src/`, pathNot: [...TESTS, ...FAKES] },
      to: { pathNot: [`^${row.dir}/`, ...own, ...external, '^\\.'], dependencyTypesNot: ['core'] },
    },
    {
      name: 'packages-by-name',
      why: 'another package is entered by its name, never by a path',
      from: { path: `^${row.dir}/` },
      to: { path: '^(packages|apps|bench)/', pathNot: `^${row.dir}/`, dependencyTypes: ['local'] },
    },
  ]
}

/** The source file behind an entry such as `@sandbox/broker/engine`, as a pattern; empty when it is not there. */
function entryFile(root: string, entry: string): string[] {
  const name = packageOf(entry)
  const dir = TABLE.find((row) => row.name === name)?.dir
  if (dir === undefined) throw new TypeError(`the import table names an unknown package: ${entry}`)
  const manifest = join(root, dir, 'package.json')
  if (!existsSync(manifest)) return []
  const exported = JSON.parse(readFileSync(manifest, 'utf8')).exports?.[`.${entry.slice(name.length)}`]
  const file = typeof exported === 'string' ? exported : exported?.['@sandbox/source']
  return typeof file === 'string' ? [`^${dir}/${file.slice(2).replaceAll('.', '\\.')}$`] : []
}

const EVERYWHERE: readonly Fence[] = [
  { name: 'no-cycles', why: 'a cycle has no order to read it in', from: {}, to: { circular: true } },
  {
    name: 'resolvable',
    why: 'the import leads nowhere',
    from: {},
    to: { couldNotResolve: true, pathNot: '^pi-roundtable$' },
  },
  {
    name: 'no-fakes-in-src',
    why: 'fakes are for tests',
    from: {
      path: '^(packages|apps)/',
      pathNot: [...TESTS, ...FAKES, '^packages/testing/', '\\.config\\.ts$'],
    },
    to: { path: [...FAKES, '^packages/testing/', '^@sandbox/testing$'] },
  },
  {
    name: 'no-tests-in-src',
    why: 'a test is nobody’s part',
    from: { path: '^(packages|apps|bench)/', pathNot: TESTS },
    to: { path: '\\.(test|test-d|bench)\\.ts$' },
  },
]

const LOWER: readonly Fence[] = [
  {
    name: 'pure',
    why: 'protocol, and credential-scope outside sources/, do no I/O',
    from: { path: '^packages/(protocol|credential-scope)/src/', pathNot: [...TESTS, `${SCOPE}sources/`] },
    to: {
      dependencyTypes: ['core'],
      pathNot: '^(assert|buffer|crypto|events|string_decoder|timers|util)(/|$)',
    },
  },
  {
    name: 'pure-knows-no-sources',
    why: 'the root of credential-scope must not bring the sources, which do I/O',
    from: { path: SCOPE, pathNot: [...TESTS, `${SCOPE}sources/`] },
    to: { path: `${SCOPE}sources/` },
  },
  {
    name: 'engine-knows-no-broker',
    why: 'two brokers stand on one engine, so it knows neither',
    from: { path: `${BROKER}engine/`, pathNot: TESTS },
    to: { path: BROKER, pathNot: `${BROKER}engine/` },
  },
  {
    name: 'mcp-client-behind-its-entry',
    why: 'the MCP client is an optional peer: the root and the engine work without it',
    from: {
      path: `${BROKER}`,
      pathNot: [...TESTS, `${BROKER}mcp/(client-link|(http|stdio)-connection|mcp-server|index)\\.ts$`],
    },
    to: {
      path: [
        '(^|/)node_modules/@modelcontextprotocol/',
        '^@modelcontextprotocol/',
        `${BROKER}mcp/(client-link|(http|stdio)-connection|mcp-server|index)\\.ts$`,
      ],
    },
  },
  {
    name: 'pi-broker-on-engine-only',
    why: 'pi-broker enters the broker by ./engine alone',
    from: { path: '^packages/pi-broker/', pathNot: TESTS },
    to: { path: BROKER, pathNot: `${BROKER}engine/index\\.ts$` },
  },
]

const WORKERS: readonly Fence[] = [
  {
    name: 'dockerode-behind-one-file',
    why: 'host/container/docker-client.ts alone speaks to the engine',
    from: { path: '^(packages|apps)/', pathNot: [...TESTS, `${WORKER}host/container/docker-client\\.ts$`] },
    to: { path: ['node_modules/dockerode/', 'node_modules/@types/dockerode/', '^dockerode(/|$)'] },
  },
  {
    name: 'host-knows-no-guest',
    why: 'host and guest meet in @sandbox/protocol only',
    from: { path: WORKER, pathNot: [`${WORKER}guest/`, ...FAKES] },
    to: { path: `${WORKER}guest/` },
  },
  {
    name: 'guest-knows-no-host',
    why: 'host and guest meet in @sandbox/protocol only',
    from: { path: `${WORKER}guest/` },
    to: { path: WORKER, pathNot: [`${WORKER}guest/`, `${WORKER}pi-content\\.ts$`, ...FAKES] },
  },
  {
    name: 'guest-knows-no-other-guest',
    why: 'guests share guest/shared and nothing else',
    from: { path: `${WORKER}guest/([^/]+)/` },
    to: { path: `${WORKER}guest/`, pathNot: [`${WORKER}guest/$1/`, `${WORKER}guest/shared/`] },
  },
  {
    name: 'guest-brings-nothing',
    why: 'a guest bundle holds our code, @sandbox/protocol and Node’s own modules',
    from: { path: `${WORKER}guest/`, pathNot: TESTS },
    to: { path: '(^|/)node_modules/', pathNot: PI_AGENT },
  },
  {
    name: 'agent-behind-its-guest',
    why: 'the Pi agent is in the bundle of guest/pi and nowhere else: users do not install it',
    from: { path: '^(packages|apps|bench)/', pathNot: [...TESTS, `${WORKER}guest/pi/`] },
    to: { path: PI_AGENT },
  },
]

const RUNTIME_IGNORES =
  '(pi-)?(plugin|defaults)\\.ts$|(claim|channel|commands|host|attachments|delegation|prechecks)/'

const PLUGINS: readonly Fence[] = [
  {
    name: 'runtime-knows-no-chat',
    why: 'the runtimes take ports; the chat’s side calls them',
    from: { path: `${PLUGIN}runtime/`, pathNot: TESTS },
    to: { path: `${PLUGIN}(${RUNTIME_IGNORES})` },
  },
  {
    name: 'safe-fetch-is-a-leaf',
    why: 'safe-fetch can be lifted out as it is',
    from: { path: `${PLUGIN}safe-fetch/`, pathNot: TESTS },
    to: { path: '^(packages|apps)/', pathNot: `${PLUGIN}safe-fetch/` },
  },
  {
    name: 'prechecks-behind-their-entry',
    why: 'they need the MCP client, an optional peer: everything else works without it',
    from: { path: PLUGIN, pathNot: [...TESTS, `${PLUGIN}prechecks/`] },
    to: { path: [`${PLUGIN}prechecks/`, `${BROKER}mcp/index\\.ts$`] },
  },
]

const FENCES: readonly Fence[] = [...EVERYWHERE, ...LOWER, ...WORKERS, ...PLUGINS]
