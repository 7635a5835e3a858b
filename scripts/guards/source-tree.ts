import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { readSourceFile, type SourceFile } from './source-file.ts'
import { TABLE, type WorkspaceRow } from './table.ts'

/** A workspace of the table that is there, with its sources read. */
export interface Workspace {
  readonly row: WorkspaceRow
  /** Every TypeScript file of the workspace, tests and configuration files included. */
  readonly files: readonly SourceFile[]
}

const LEFT_OUT = new Set(['node_modules', 'dist', 'coverage', '.turbo'])

/** Reads all workspaces of the table that `root` has. */
export function readWorkspaces(root: string): Workspace[] {
  return TABLE.filter((row) => existsSync(join(root, row.dir, 'package.json'))).map((row) => ({
    row,
    files: typeScriptFiles(root, row.dir).map((path) => readSourceFile(root, path)),
  }))
}

/** Reads what belongs to no workspace: scripts, repository tests, configuration. */
export function readRootFiles(root: string): SourceFile[] {
  return ['scripts', 'test']
    .flatMap((dir) => typeScriptFiles(root, dir))
    .map((path) => readSourceFile(root, path))
}

/** The TypeScript files below `dir`, as paths from `root`, sorted. */
export function typeScriptFiles(root: string, dir: string): string[] {
  if (!existsSync(join(root, dir))) return []
  return readdirSync(join(root, dir), { withFileTypes: true })
    .flatMap((entry) => {
      const path = `${dir}/${entry.name}`
      if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : typeScriptFiles(root, path)
      return /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts') ? [path] : []
    })
    .sort()
}

/** True for tests, for what stands in `test/` or `fuzz/`, and for benchmarks in a test's clothes. */
export function isTestPath(path: string): boolean {
  return /\.(test|test-d|bench)\.ts$/.test(path) || /(^|\/)(test|fuzz)\//.test(path)
}

/** True for the fakes that a package ships or keeps for tests. */
export function isFakePath(path: string): boolean {
  return /\/src\/(.+\/)?testing\//.test(path)
}

/** Sources that a user runs: `src`, without tests and without fakes. */
export function shippedFiles(workspace: Workspace): SourceFile[] {
  const src = `${workspace.row.dir}/src/`
  return workspace.files.filter(({ path }) => path.startsWith(src) && !isTestPath(path) && !isFakePath(path))
}
