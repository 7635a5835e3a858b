import { expect, test } from 'vitest'
import { type FixtureTree, fixtureTree } from './fixture-tree.ts'
import { readWorkspaces } from './source-tree.ts'
import { checkSurface, SURFACE_FILE, updateSurface } from './surface.ts'

function pinnedTree(): FixtureTree {
  const tree = fixtureTree()
  tree.write(
    'packages/broker/src/index.ts',
    "export { a, type B } from './a.ts'\nexport * as limits from './a.ts'\n",
  )
  tree.write(SURFACE_FILE, '{}')
  updateSurface(tree.root, readWorkspaces(tree.root))
  return tree
}

function problems(root: string): string[] {
  return checkSurface(root, readWorkspaces(root)).map((one) => `${one.where} ${one.problem.split(' (')[0]}`)
}

test('guard C pins the names of every entry, types included', () => {
  using tree = pinnedTree()
  expect(problems(tree.root)).toEqual([])
})

test('guard C sees a name that came, a name that went and an entry that went', () => {
  using tree = pinnedTree()
  tree.write(
    'packages/broker/src/index.ts',
    "export { a, c } from './a.ts'\nexport * as limits from './a.ts'\n",
  )
  tree.write('packages/broker/src/engine/index.ts', 'export const e = 1\n')
  tree.write('packages/protocol/src/index.ts', 'export interface P { a: 1 }\n')
  expect(problems(tree.root)).toEqual([
    '@sandbox/protocol +P',
    '@sandbox/broker -B +c',
    '@sandbox/broker/engine +e',
  ])
})
