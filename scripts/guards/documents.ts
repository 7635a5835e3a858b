import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Finding, fail } from './finding.ts'
import { parseSource } from './source-file.ts'
import type { Workspace } from './source-tree.ts'
import { readSurface } from './surface.ts'
import { TABLE } from './table.ts'

const BLOCK = /^```ts\n([\s\S]*?)^```/gm
const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g
const PUBLISHED = new Set(TABLE.filter((row) => row.published).map((row) => row.name))

/** Documents: links lead somewhere, and code imports only names that the packages really export. */
export function checkDocuments(root: string, workspaces: readonly Workspace[]): Finding[] {
  const surface = readSurface(root, workspaces)
  return markdownFiles(root).flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return [
      ...brokenLinks(root, path, text),
      ...[...text.matchAll(BLOCK)].flatMap((match) =>
        wrongImports(surface, path, lineAt(text, match.index), match[1] ?? ''),
      ),
    ]
  })
}

function markdownFiles(root: string): string[] {
  const dirs = ['.', 'docs', 'docs/decisions', ...TABLE.map((row) => row.dir)]
  return dirs
    .filter((dir) => existsSync(join(root, dir)))
    .flatMap((dir) =>
      readdirSync(join(root, dir))
        .filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')
        .map((name) => (dir === '.' ? name : `${dir}/${name}`)),
    )
}

function brokenLinks(root: string, path: string, text: string): Finding[] {
  return [...text.matchAll(LINK)]
    .map((match) => ({ target: match[1] ?? '', line: lineAt(text, match.index) }))
    .filter(({ target }) => !/^(https?:|mailto:|#)/.test(target))
    .filter(({ target }) => !existsSync(join(root, dirname(path), target.split('#')[0] ?? '')))
    .map(({ target, line }) => fail('links', `${path}:${line}`, `leads nowhere: ${target}`))
}

function wrongImports(
  surface: Readonly<Record<string, readonly string[]>>,
  path: string,
  line: number,
  code: string,
): Finding[] {
  const where = `${path}:${line}`
  let imports: ReturnType<typeof parseSource>['imports']
  try {
    imports = parseSource(path, code).imports
  } catch (error) {
    return [fail('examples', where, `the example is no TypeScript: ${(error as Error).message}`)]
  }
  return imports
    .filter((one) =>
      [...PUBLISHED].some((name) => one.specifier === name || one.specifier.startsWith(`${name}/`)),
    )
    .flatMap((one) => {
      const exported = surface[one.specifier]
      if (exported === undefined) return [fail('examples', where, `there is no entry ${one.specifier}`)]
      return one.names
        .filter(({ name }) => name !== '*' && !exported.includes(name))
        .map(({ name }) => fail('examples', where, `${one.specifier} exports no ${name}`))
    })
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length
}
