import { expect, test } from 'vitest'
import { fixtureTree } from './fixture-tree.ts'
import { checkManifests } from './manifests.ts'
import { readWorkspaces } from './source-tree.ts'

type Manifest = Record<string, never> & { [key: string]: unknown }

const broker = 'packages/broker'

function problems(root: string): string[] {
  return checkManifests(root, readWorkspaces(root)).map((one) => `${one.rule}: ${one.problem}`)
}

test('guard B is content with manifests that say what the sources use', () => {
  using tree = fixtureTree()
  tree.write(`${broker}/src/index.ts`, "import { x } from '@sandbox/protocol'\nimport 'undici/index.js'\n")
  tree.write(`${broker}/src/index.test.ts`, "import 'vitest'\nimport { x } from '@sandbox/testing'\n")
  tree.manifest(broker, (manifest) => {
    manifest.dependencies = { '@sandbox/protocol': 'workspace:^', undici: 'catalog:' }
    manifest.devDependencies = { '@sandbox/testing': 'workspace:*' }
  })
  expect(problems(tree.root)).toEqual([])
})

const planted: [string, (manifest: Manifest) => void, RegExp][] = [
  [
    'a dependency that the table does not have',
    (m) => Object.assign(m, { dependencies: { 'left-pad': 'catalog:' } }),
    /manifest-table: left-pad/,
  ],
  [
    'a dependency that nothing imports',
    (m) => Object.assign(m, { dependencies: { undici: 'catalog:' } }),
    /manifest-used: dependency undici is imported by nothing/,
  ],
  [
    'a devDependency that nothing imports',
    (m) => Object.assign(m, { devDependencies: { 'fast-check': 'catalog:' } }),
    /manifest-used: devDependency fast-check/,
  ],
  [
    'tests that stand above their package',
    (m) => Object.assign(m, { devDependencies: { '@sandbox/docker-worker': 'workspace:*' } }),
    /manifest-table: its tests may not stand above it: @sandbox\/docker-worker/,
  ],
  [
    'a version of its own',
    (m) => Object.assign(m, { dependencies: { undici: '^8.0.0' } }),
    /manifest-versions: undici is \^8/,
  ],
  ['sideEffects', (m) => Object.assign(m, { sideEffects: true }), /manifest-fields: sideEffects is true/],
  ['files', (m) => Object.assign(m, { files: ['dist', 'src'] }), /manifest-fields: files/],
  ['the licence', (m) => Object.assign(m, { license: 'ISC' }), /manifest-fields: license/],
  ['private', (m) => Object.assign(m, { private: true }), /manifest-fields: private/],
  [
    'exports without types',
    (m) =>
      Object.assign(m, {
        exports: { '.': { '@sandbox/source': './src/index.ts', default: './dist/index.js' } },
      }),
    /manifest-exports: \. has @sandbox\/source, default/,
  ],
  [
    'an entry whose source is not there',
    (m) =>
      Object.assign(m, {
        exports: { './x': { '@sandbox/source': './src/x.ts', types: './x.d.ts', default: './x.js' } },
      }),
    /manifest-exports: \.\/x names a file that is not there/,
  ],
  [
    'the source condition in what is published',
    (m) => Object.assign(m, { publishConfig: { access: 'public', exports: m.exports } }),
    /manifest-exports: publishConfig\.exports/,
  ],
]

test.each(planted)('guard B sees a planted violation: %s', (_, plant, expected) => {
  using tree = fixtureTree()
  expect(problems(tree.root)).toEqual([])
  tree.manifest(broker, (manifest) => plant(manifest as Manifest))
  expect(problems(tree.root).join('\n')).toMatch(expected)
})

test('guard B sees an import that the manifest forgot, in src and in a test', () => {
  using tree = fixtureTree()
  tree.write(`${broker}/src/a.ts`, "import type { X } from '@sandbox/protocol'\n")
  tree.write(`${broker}/src/a.test.ts`, "import fc from 'fast-check'\n")
  expect(problems(tree.root)).toEqual([
    'manifest-used: src imports @sandbox/protocol, which is no dependency',
    'manifest-used: a test imports fast-check, which is not declared',
  ])
})
