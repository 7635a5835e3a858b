import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Finding, fail } from './finding.ts'
import type { SourceFile } from './source-file.ts'
import type { Workspace } from './source-tree.ts'

/** For each entry of each published package: the names it exports, types included, sorted. */
export type Surface = Readonly<Record<string, readonly string[]>>

/** Where the pins are kept. */
export const SURFACE_FILE = 'scripts/guards/surface.json'

/** Guard C: the names that users import are pinned. A red pin asks for a changeset. */
export function checkSurface(root: string, workspaces: readonly Workspace[]): Finding[] {
  const pinned = JSON.parse(readFileSync(join(root, SURFACE_FILE), 'utf8')) as Surface
  const found = readSurface(root, workspaces)
  const entries = [...new Set([...Object.keys(pinned), ...Object.keys(found)])]
  return entries.flatMap((entry) => {
    const gone = (pinned[entry] ?? []).filter((name) => !found[entry]?.includes(name))
    const fresh = (found[entry] ?? []).filter((name) => !pinned[entry]?.includes(name))
    if (gone.length + fresh.length === 0) return []
    const parts = [...gone.map((name) => `-${name}`), ...fresh.map((name) => `+${name}`)]
    const advice = 'if it is meant: pnpm guards --update, and a changeset'
    return [fail('surface', entry, `${parts.join(' ')} (${advice})`)]
  })
}

/** Writes the pins anew. */
export function updateSurface(root: string, workspaces: readonly Workspace[]): void {
  writeFileSync(join(root, SURFACE_FILE), `${JSON.stringify(readSurface(root, workspaces), null, 2)}\n`)
}

/** Reads what the published packages export, from their sources. */
export function readSurface(root: string, workspaces: readonly Workspace[]): Surface {
  const published = workspaces.filter((workspace) => workspace.row.published)
  return Object.fromEntries(
    published.flatMap((workspace) =>
      entriesOf(root, workspace).map(([entry, file]) => [entry, exportedNames(file)]),
    ),
  )
}

function entriesOf(root: string, { row, files }: Workspace): [string, SourceFile | undefined][] {
  const manifest = JSON.parse(readFileSync(join(root, row.dir, 'package.json'), 'utf8'))
  return Object.entries<Record<string, string> | string>(manifest.exports ?? {}).flatMap(([path, target]) => {
    const source = typeof target === 'string' ? undefined : target['@sandbox/source']
    if (source === undefined) return []
    const file = files.find((one) => one.path === `${row.dir}/${source.slice(2)}`)
    return [[`${row.name}${path.slice(1)}`, file] as [string, SourceFile | undefined]]
  })
}

function exportedNames(file: SourceFile | undefined): string[] {
  return [...new Set((file?.exports ?? []).map((one) => one.name))].sort()
}
