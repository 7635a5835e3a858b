import { expect, test } from 'vitest'
import { checkBudgets } from './budgets.ts'
import { fixtureTree } from './fixture-tree.ts'
import { readWorkspaces } from './source-tree.ts'

function findings(root: string): string[] {
  return checkBudgets(root, readWorkspaces(root)).map((one) => `${one.level} ${one.rule} ${one.where}`)
}

const lines = (count: number) => '// a line\n'.repeat(count)
const body = (count: number) =>
  `/** A function. */\nexport function f() {\n${lines(count - 2)}}\n/** A method. */\nexport const o = { m() {} }\n`
const file = 'packages/broker/src/a.ts'

const planted: [what: string, path: string, text: string, expected: string][] = [
  ['a file of 250 lines', file, lines(250), `warn file-lines ${file}`],
  ['a file of 400 lines', file, lines(400), `fail file-lines ${file}`],
  ['a function of 45 lines', file, body(45), `warn function-lines ${file}:2`],
  ['a function of 80 lines', file, body(80), `fail function-lines ${file}:2`],
  [
    'a method of 80 lines',
    file,
    `/** A class. */\nexport class A {\n  m() {\n${lines(78)}}\n}\n`,
    `fail function-lines ${file}:3`,
  ],
  ['a bare error', file, "throw new Error('no')\n", `fail no-bare-error ${file}:1`],
  ['a default export', file, 'export default 1\n', `fail no-default-export ${file}:1`],
  [
    'export { x as default }',
    file,
    'const x = 1\nexport { x as default }\n',
    `fail no-default-export ${file}:2`,
  ],
  ['an export without a comment', file, '// no doc\nexport const x = 1\n', `fail documented ${file}:2`],
  ['a type without a comment', file, '/* no doc */\nexport type X = 1\n', `fail documented ${file}:2`],
  ['a late export without a comment', file, 'function x() {}\nexport { x }\n', `fail documented ${file}:2`],
  [
    'export * in an index',
    'packages/broker/src/index.ts',
    "export * from './a.ts'\n",
    'fail named-exports packages/broker/src/index.ts:1',
  ],
  [
    'an empty name',
    'packages/broker/src/utils.ts',
    'export {}\n',
    'fail file-names packages/broker/src/utils.ts',
  ],
  [
    'a module mock in a test',
    'packages/broker/src/a.test.ts',
    "import { vi } from 'vitest'\nvi.mock('./a.ts')\n",
    'fail no-module-mocks packages/broker/src/a.test.ts:2',
  ],
  ['a long function in a script', 'scripts/x.ts', body(80), 'fail function-lines scripts/x.ts:2'],
]

test.each(planted)('the budgets see a planted violation: %s', (_, path, text, expected) => {
  using tree = fixtureTree()
  expect(findings(tree.root)).toEqual([])
  tree.write(path, text)
  expect(findings(tree.root)).toContain(expected)
})

test('the budgets let through what they should', () => {
  using tree = fixtureTree()
  tree.write(
    file,
    `${lines(100)}/** Documented. */\nexport const X = 1\n/** Its type. */\nexport type X = 1\n`,
  )
  tree.write('packages/broker/src/b.ts', `${body(44)}throw new TypeError('x')\nexport { X } from './a.ts'\n`)
  tree.write('packages/broker/src/a.test.ts', `${body(100)}throw new Error('tests may')\n`)
  tree.write('packages/broker/tsup.config.ts', 'export default {}\n')
  expect(findings(tree.root)).toEqual([])
})
