import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { TABLE, type WorkspaceRow } from './table.ts'

/** A small repository of our shape that every guard is content with, to plant one violation in. */
export interface FixtureTree extends Disposable {
  readonly root: string
  /** Writes a file, with its folders. */
  write(path: string, text: string): void
  /** Changes a workspace's manifest. */
  manifest(dir: string, change: (manifest: Record<string, unknown>) => void): void
}

/** Everything resolves from everywhere, so that only a guard stands between two packages. */
export function fixtureTree(): FixtureTree {
  const root = mkdtempSync(join(tmpdir(), 'guards-'))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  for (const row of TABLE) {
    write(`${row.dir}/package.json`, JSON.stringify(manifestOf(row)))
    for (const file of Object.values(entriesOf(row))) write(`${row.dir}/${file}`, 'export {}\n')
    mkdirSync(join(root, 'node_modules/@sandbox'), { recursive: true })
    symlinkSync(join(root, row.dir), join(root, 'node_modules', row.name))
  }
  for (const name of ['@modelcontextprotocol/client', 'typebox', 'undici', 'dockerode', 'hono', 'left-pad']) {
    write(`node_modules/${name}/package.json`, JSON.stringify({ name, type: 'module', main: 'index.js' }))
    write(`node_modules/${name}/index.js`, 'export const x = 1\n')
  }
  return {
    root,
    write,
    manifest: (dir, change) => {
      const row = TABLE.find((one) => one.dir === dir)
      if (row === undefined) throw new TypeError(`no such workspace: ${dir}`)
      const manifest = manifestOf(row)
      change(manifest)
      write(`${dir}/package.json`, JSON.stringify(manifest))
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  }
}

const SUBPATHS: Record<string, readonly string[]> = {
  '@sandbox/broker': ['engine'],
  '@sandbox/credential-scope': ['sources'],
  '@sandbox/roundtable-plugin': ['runtime', 'host'],
}

function entriesOf(row: WorkspaceRow): Record<string, string> {
  const subpaths = SUBPATHS[row.name] ?? []
  return {
    '.': 'src/index.ts',
    ...Object.fromEntries(subpaths.map((name) => [`./${name}`, `src/${name}/index.ts`])),
  }
}

function manifestOf(row: WorkspaceRow): Record<string, unknown> {
  const built = (file: string) => `./${file.replace('src/', 'dist/')}`
  const published = Object.fromEntries(
    Object.entries(entriesOf(row)).map(([path, file]) => [
      path,
      { types: built(file).replace('.ts', '.d.ts'), default: built(file).replace('.ts', '.js') },
    ]),
  )
  const sources = Object.fromEntries(
    Object.entries(entriesOf(row)).map(([path, file]) => [
      path,
      { '@sandbox/source': `./${file}`, ...published[path] },
    ]),
  )
  return {
    name: row.name,
    ...(row.published ? {} : { private: true }),
    type: 'module',
    license: 'MIT',
    sideEffects: false,
    files: ['dist'],
    exports: sources,
    ...(row.published ? { publishConfig: { access: 'public', exports: published } } : {}),
  }
}
