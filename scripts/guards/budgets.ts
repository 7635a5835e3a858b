import { basename } from 'node:path'
import { type Finding, fail, warn } from './finding.ts'
import type { SourceFile } from './source-file.ts'
import { isFakePath, isTestPath, readRootFiles, type Workspace } from './source-tree.ts'

/** Lines at which a file or a function is shown, and at which it fails. */
const BUDGETS = { file: { warn: 250, fail: 400 }, function: { warn: 45, fail: 80 } }

/** Words that say nothing about what a file holds. */
const EMPTY_NAMES = new Set(['session', 'client', 'manager', 'service', 'utils', 'helpers', 'common'])

/** House shape: sizes, names, doc comments, errors, no mocks, no default exports. */
export function checkBudgets(root: string, workspaces: readonly Workspace[]): Finding[] {
  const files = [...workspaces.flatMap((workspace) => workspace.files), ...readRootFiles(root)]
  return files.flatMap((file) => [
    ...checkMocks(file),
    ...checkFileName(file),
    ...checkDefaultExports(file),
    ...(isTestPath(file.path) || isConfig(file) ? [] : [...checkSizes(file), ...checkShape(file)]),
  ])
}

function isConfig(file: SourceFile): boolean {
  return file.path.endsWith('.config.ts')
}

function checkMocks(file: SourceFile): Finding[] {
  return file.moduleMocks.map((line) =>
    fail('no-module-mocks', `${file.path}:${line}`, 'modules are not mocked: hand the part in'),
  )
}

function checkFileName(file: SourceFile): Finding[] {
  const word = basename(file.path).split('.')[0] ?? ''
  if (!EMPTY_NAMES.has(word)) return []
  return [fail('file-names', file.path, `“${word}” says nothing: name the file after what it holds`)]
}

function checkDefaultExports(file: SourceFile): Finding[] {
  if (isConfig(file)) return []
  return file.exports
    .filter((one) => one.name === 'default')
    .map((one) => fail('no-default-export', `${file.path}:${one.line}`, 'exports have names'))
}

function checkSizes(file: SourceFile): Finding[] {
  const budget = (kind: 'file' | 'function', where: string, what: string, lines: number): Finding[] => {
    const { warn: shown, fail: broken } = BUDGETS[kind]
    const problem = `${what} has ${lines} lines: shown at ${shown}, fails at ${broken}`
    if (lines >= broken) return [fail(`${kind}-lines`, where, problem)]
    return lines >= shown ? [warn(`${kind}-lines`, where, problem)] : []
  }
  return [
    ...budget('file', file.path, 'the file', file.lines),
    ...file.functions.flatMap((one) =>
      budget('function', `${file.path}:${one.line}`, one.name || 'a function', one.lines),
    ),
  ]
}

function checkShape(file: SourceFile): Finding[] {
  if (!/^(packages|apps|bench)\/([^/]+\/)?src\//.test(file.path) || isFakePath(file.path)) return []
  return [
    ...file.bareErrors.map((line) =>
      fail(
        'no-bare-error',
        `${file.path}:${line}`,
        'throw the package’s own error, or TypeError for a caller’s mistake',
      ),
    ),
    ...file.exports
      .filter((one) => one.declared && !one.documented)
      .map((one) => fail('documented', `${file.path}:${one.line}`, `${one.name} has no doc comment`)),
    ...file.exports
      .filter((one) => one.name === '*' && file.path.endsWith('/index.ts'))
      .map((one) => fail('named-exports', `${file.path}:${one.line}`, 'an index names what it exports')),
  ]
}
