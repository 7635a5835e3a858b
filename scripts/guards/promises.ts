import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Finding, fail } from './finding.ts'
import { isTestPath, typeScriptFiles } from './source-tree.ts'
import { TABLE } from './table.ts'

/** The list of promises: the rows of this document's tables that open with an id in backticks. */
export const PROMISES_FILE = 'docs/security.md'

const ID = '[a-z]+:[a-z0-9-]+'
const ROW = new RegExp(`^\\| \`(${ID})\` +\\|`, 'gm')
const CITATION = new RegExp(`\\[(${ID})\\]`, 'g')

/** Guard E: every promise has a test that cites it (`… [secret:not-in-guest-env]`), and no test cites another. */
export function checkPromises(root: string): Finding[] {
  const listed = promiseIds(root)
  const cited = citations(root)
  const known = new Set(listed)
  return [
    ...duplicates(listed).map((id) => fail('promises', PROMISES_FILE, `${id} stands there twice`)),
    ...listed
      .filter((id) => !cited.some((one) => one.id === id))
      .map((id) => fail('promises', PROMISES_FILE, `no test’s title cites [${id}]`)),
    ...cited
      .filter((one) => !known.has(one.id))
      .map((one) => fail('promises', one.where, `[${one.id}] is no promise of ${PROMISES_FILE}`)),
  ]
}

/** The ids of all promises, in the order of the document. */
function promiseIds(root: string): string[] {
  const path = join(root, PROMISES_FILE)
  if (!existsSync(path)) return []
  return [...readFileSync(path, 'utf8').matchAll(ROW)].map((match) => match[1] ?? '')
}

function duplicates(ids: readonly string[]): string[] {
  return ids.filter((id, index) => ids.indexOf(id) !== index)
}

interface Citation {
  readonly id: string
  readonly where: string
}

/** Citations stand in titles of tests. A line of comment cites nothing. */
function citations(root: string): Citation[] {
  const dirs = [...TABLE.map((row) => row.dir), 'test']
  const tests = dirs.flatMap((dir) => typeScriptFiles(root, dir)).filter(isTestPath)
  return tests.flatMap((path) =>
    readFileSync(join(root, path), 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        [...(/^\s*(\/\/|\/?\*)/.test(line) ? '' : line).matchAll(CITATION)].map((match) => ({
          id: match[1] ?? '',
          where: `${path}:${index + 1}`,
        })),
      ),
  )
}
