import { expect, test } from 'vitest'
import { checkDocuments } from './documents.ts'
import { fixtureTree } from './fixture-tree.ts'
import { readWorkspaces } from './source-tree.ts'

const fence = '```'

test('documents: a broken link and an example that imports what is not there are seen', () => {
  using tree = fixtureTree()
  tree.write('packages/broker/src/index.ts', 'export const a = 1\n')
  const problems = () =>
    checkDocuments(tree.root, readWorkspaces(tree.root)).map((one) => `${one.where} ${one.problem}`)
  tree.write('docs/x.md', '[up](../README.md#part) [out](https://example.com) [here](#here)\n')
  tree.write('README.md', `[x](docs/x.md)\n${fence}ts\nimport { a } from '@sandbox/broker'\n${fence}\n`)
  expect(problems()).toEqual([])
  tree.write('docs/x.md', '\n[up](../NOTHING.md)\n')
  const code = "import { a, b } from '@sandbox/broker'\nimport { c } from '@sandbox/broker/deep'"
  tree.write(
    'packages/broker/README.md',
    `# Broker\n\n${fence}ts\n${code}\n${fence}\n\n${fence}ts\n}{\n${fence}\n`,
  )
  expect(problems()).toEqual([
    'docs/x.md:2 leads nowhere: ../NOTHING.md',
    'packages/broker/README.md:3 @sandbox/broker exports no b',
    'packages/broker/README.md:3 there is no entry @sandbox/broker/deep',
    expect.stringMatching(/^packages\/broker\/README\.md:8 the example is no TypeScript/),
  ])
})
