import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type ICruiseResult, type IViolation } from 'dependency-cruiser'
import { type Finding, fail } from './finding.ts'
import { importRules } from './import-rules.ts'
import { typeScriptFiles } from './source-tree.ts'

const TREES = ['packages', 'apps', 'bench']

/**
 * Guard A: the import table and its fences. A file on disk that dependency-cruiser did not read is a finding
 * too: without a reader for TypeScript it sees nothing and is content.
 */
export async function checkImports(root: string): Promise<Finding[]> {
  const trees = TREES.filter((tree) => existsSync(join(root, tree)))
  const result = await cruiseTrees(root, trees)
  const read = new Set(result.modules.map((module) => module.source))
  const unread = trees.flatMap((tree) => typeScriptFiles(root, tree)).filter((path) => !read.has(path))
  return [
    ...unread.map((path) => fail('cruised', path, 'dependency-cruiser did not read this file')),
    ...result.summary.violations.map((violation) => describe(violation, result)),
  ]
}

async function cruiseTrees(root: string, trees: string[]): Promise<ICruiseResult> {
  const { output } = await cruise(
    trees,
    {
      baseDir: root,
      parser: 'tsc',
      tsPreCompilationDeps: true,
      doNotFollow: { path: '(^|/)node_modules/' },
      exclude: { path: '(^|/)(dist|coverage)/' },
      validate: true,
      ruleSet: { forbidden: importRules(root) },
    },
    {
      exportsFields: ['exports'],
      conditionNames: ['@sandbox/source', 'import', 'node', 'default', 'types'],
      extensions: ['.ts', '.tsx', '.js', '.json', '.d.ts'],
    },
  )
  if (typeof output === 'string') throw new TypeError('dependency-cruiser answered with text')
  return output
}

function describe(violation: IViolation, result: ICruiseResult): Finding {
  const rule = violation.rule.name
  const why = result.summary.ruleSetUsed?.forbidden?.find((one) => one.name === rule)?.comment ?? ''
  const way = violation.cycle?.map((step) => step.name).join(' -> ') ?? violation.to
  return fail(rule, violation.from, `imports ${way}: ${why}`)
}
