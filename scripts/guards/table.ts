/** What one workspace may import, and how it is published. */
export interface WorkspaceRow {
  /** Folder from the repository's root. */
  readonly dir: string
  readonly name: string
  /** Entries of our own that its `src` may import, by the name that stands in the import. */
  readonly own: readonly string[]
  /** Other people's packages that its `src` may import. */
  readonly external: readonly string[]
  /** Packages that its user brings. Never imported by value. */
  readonly peers?: readonly string[]
  /** Packages that are built into a guest's or the page's bundle: development dependencies, out of reach for host code. */
  readonly bundled?: readonly string[]
  readonly published: boolean
}

const SCOPE = '@sandbox/credential-scope'
const SOURCES = '@sandbox/credential-scope/sources'
const PROTOCOL = '@sandbox/protocol'
const BROKER = '@sandbox/broker'
const ENGINE = '@sandbox/broker/engine'
const MCP = '@sandbox/broker/mcp'
const PI_BROKER = '@sandbox/pi-broker'
const WORKER = '@sandbox/docker-worker'
const PLUGIN = '@sandbox/roundtable-plugin'
const HOST = '@sandbox/roundtable-plugin/host'
const RUNTIME = '@sandbox/roundtable-plugin/runtime'
const EVERYTHING = [SCOPE, SOURCES, PROTOCOL, BROKER, ENGINE, PI_BROKER, WORKER, PLUGIN, HOST, RUNTIME]

/**
 * The import table: imports go down, never up. A change here changes `docs/architecture.md` first, with its reason.
 * Tests may import more (their `devDependencies`), but every package only what its manifest names.
 */
export const TABLE: readonly WorkspaceRow[] = [
  { dir: 'packages/protocol', name: PROTOCOL, own: [], external: ['typebox'], published: true },
  { dir: 'packages/credential-scope', name: SCOPE, own: [], external: [], published: true },
  {
    dir: 'packages/broker',
    name: BROKER,
    own: [SCOPE, PROTOCOL],
    external: ['typebox', 'undici'],
    peers: ['@modelcontextprotocol/client', '@opentelemetry/api'],
    published: true,
  },
  {
    dir: 'packages/pi-broker',
    name: PI_BROKER,
    own: [ENGINE, SCOPE, PROTOCOL],
    external: [],
    published: true,
  },
  {
    dir: 'packages/docker-worker',
    name: WORKER,
    own: [PROTOCOL],
    external: ['dockerode'],
    bundled: ['@earendil-works/pi-coding-agent'],
    published: true,
  },
  {
    dir: 'packages/roundtable-plugin',
    name: PLUGIN,
    own: [WORKER, PI_BROKER, BROKER, MCP, SCOPE, PROTOCOL],
    external: ['image-size', 'ipaddr.js', 'undici'],
    peers: ['pi-roundtable'],
    published: true,
  },
  { dir: 'packages/testing', name: '@sandbox/testing', own: [], external: [], published: false },
  {
    dir: 'apps/example-bot',
    name: '@sandbox/example-bot',
    own: EVERYTHING,
    external: ['discord.js', 'hono', '@hono/node-server', 'typebox'],
    bundled: ['@preact/signals', 'preact', 'uplot'],
    published: false,
  },
  {
    dir: 'bench',
    name: '@sandbox/bench',
    own: [...EVERYTHING, '@sandbox/testing'],
    external: ['@portkey-ai/gateway', 'dockerode', 'undici'],
    published: false,
  },
]

/** The package that an import names: `undici` for `undici/index.js`, `@a/b` for `@a/b/c`. */
export function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
