import { expect, test } from 'vitest'
import { fixtureTree } from './fixture-tree.ts'
import { checkPromises, PROMISES_FILE } from './promises.ts'

// Put together here, so that this file cites no promise itself.
const cite = (id: string) => `test('a title [${id}]', () => {})\n`
const list = (...ids: string[]) =>
  `# Security\n\n| id | promise |\n| --- | --- |\n${ids.map((id) => `| \`${id}\` | text |\n`).join('')}`

test('guard E is content when list and citations agree', () => {
  using tree = fixtureTree()
  tree.write(PROMISES_FILE, list('secret:not-there', 'worker:gone'))
  tree.write('packages/broker/src/a.test.ts', cite('secret:not-there'))
  tree.write('test/b.test.ts', cite('worker:gone'))
  expect(checkPromises(tree.root)).toEqual([])
})

test('guard E sees a promise without a test, a test of an unknown promise, and a promise that stands twice', () => {
  using tree = fixtureTree()
  tree.write(PROMISES_FILE, list('secret:not-there', 'worker:gone', 'worker:gone'))
  tree.write('packages/broker/src/a.test.ts', cite('worker:gone') + cite('secret:nowhere'))
  tree.write('packages/broker/src/a.ts', '// [secret:not-there] in a source is no test\n')
  tree.write('packages/broker/src/b.test.ts', '  // [secret:not-there] in a comment is no title\n')
  expect(checkPromises(tree.root).map((one) => `${one.where} ${one.problem}`)).toEqual([
    'docs/security.md worker:gone stands there twice',
    'docs/security.md no test’s title cites [secret:not-there]',
    'packages/broker/src/a.test.ts:2 [secret:nowhere] is no promise of docs/security.md',
  ])
})
