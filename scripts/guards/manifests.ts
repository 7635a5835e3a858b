import { existsSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Finding, fail } from './finding.ts'
import type { SourceFile } from './source-file.ts'
import { shippedFiles, type Workspace } from './source-tree.ts'
import { packageOf } from './table.ts'

type ExportTarget = string | Readonly<Record<string, string>>

/** The parts of a package.json that this guard reads. */
interface Manifest {
  readonly name?: string
  readonly private?: boolean
  readonly license?: string
  readonly type?: string
  readonly sideEffects?: boolean
  readonly files?: readonly string[]
  readonly exports?: Readonly<Record<string, ExportTarget>>
  readonly publishConfig?: { readonly access?: string; readonly exports?: Record<string, ExportTarget> }
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const SOURCE = '@sandbox/source'
/** What the repository's root provides to every workspace's tests and build. */
const FROM_ROOT = new Set(['vitest', 'tsup', 'typescript', 'vite'])

/** Guard B: what a manifest declares is what the table allows and what the sources use. */
export function checkManifests(root: string, workspaces: readonly Workspace[]): Finding[] {
  return workspaces.flatMap((workspace) => {
    const path = `${workspace.row.dir}/package.json`
    const manifest = JSON.parse(readFileSync(join(root, path), 'utf8')) as Manifest
    const say = (rule: string, problem: string) => fail(rule, path, problem)
    return [
      ...checkIdentity(workspace, manifest, say),
      ...checkDeclared(workspace, manifest, say),
      ...checkUsed(workspace, manifest, say),
      ...checkExports(root, workspace, manifest, say),
    ]
  })
}

type Say = (rule: string, problem: string) => Finding

function checkIdentity({ row }: Workspace, manifest: Manifest, say: Say): Finding[] {
  const expected: [string, unknown, unknown][] = [
    ['name', manifest.name, row.name],
    ['private', manifest.private ?? false, !row.published],
    ['type', manifest.type, 'module'],
  ]
  if (row.published) {
    expected.push(['license', manifest.license, 'MIT'])
    expected.push(['sideEffects', manifest.sideEffects, false])
    expected.push(['files', manifest.files, ['dist']])
    expected.push(['publishConfig.access', manifest.publishConfig?.access, 'public'])
  }
  return expected
    .filter(([, found, wanted]) => !isDeepStrictEqual(found, wanted))
    .map(([field, found, wanted]) =>
      say('manifest-fields', `${field} is ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`),
    )
}

function checkDeclared({ row }: Workspace, manifest: Manifest, say: Say): Finding[] {
  const allowed = new Set([...row.own.map(packageOf), ...row.external])
  const dependencies = Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })
  const peers = Object.keys(manifest.peerDependencies ?? {}).filter((name) => !row.peers?.includes(name))
  const strange = Object.keys(manifest.devDependencies ?? {}).filter(
    (name) => isOwn(name) && name !== '@sandbox/testing' && !allowed.has(name),
  )
  return [
    ...dependencies
      .filter((name) => !allowed.has(name))
      .map((name) => say('manifest-table', `${name} is not in this package’s row of the table`)),
    ...peers.map((name) => say('manifest-table', `peer ${name} is not in this package’s row of the table`)),
    ...strange.map((name) => say('manifest-table', `its tests may not stand above it: ${name}`)),
    ...checkVersions(manifest, say),
  ]
}

function checkVersions(manifest: Manifest, say: Say): Finding[] {
  const all = Object.entries({ ...manifest.devDependencies, ...manifest.dependencies })
  return all
    .filter(([name, version]) => !version.startsWith(isOwn(name) ? 'workspace:' : 'catalog:'))
    .map(([name, version]) =>
      say('manifest-versions', `${name} is ${version}: ours by workspace:, others by catalog:`),
    )
}

function checkUsed(workspace: Workspace, manifest: Manifest, say: Say): Finding[] {
  const shipped = usedPackages(shippedFiles(workspace))
  const anywhere = usedPackages(workspace.files)
  const dependencies = new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }))
  const peers = new Set(Object.keys(manifest.peerDependencies ?? {}))
  const dev = new Set(Object.keys(manifest.devDependencies ?? {}))
  const self = workspace.row.name
  const bundled = new Set(workspace.row.bundled)
  const missing = [...shipped].filter(
    (name) => !dependencies.has(name) && !peers.has(name) && !bundled.has(name) && name !== self,
  )
  const known = new Set([...dependencies, ...peers, ...dev, ...FROM_ROOT, self])
  return [
    ...missing.map((name) => say('manifest-used', `src imports ${name}, which is no dependency`)),
    ...[...dependencies]
      .filter((name) => !shipped.has(name))
      .map((name) => say('manifest-used', `dependency ${name} is imported by nothing in src`)),
    ...[...anywhere]
      .filter((name) => !known.has(name) && !missing.includes(name))
      .map((name) => say('manifest-used', `a test imports ${name}, which is not declared`)),
    ...[...dev]
      .filter((name) => !anywhere.has(typedBy(name)))
      .map((name) => say('manifest-used', `devDependency ${name} is imported by nothing`)),
  ]
}

/** The package whose types `name` brings, else `name` itself. */
function typedBy(name: string): string {
  return name.startsWith('@types/') ? name.slice('@types/'.length).replace('__', '/') : name
}

function isOwn(name: string): boolean {
  return name.startsWith('@sandbox/')
}

function usedPackages(files: readonly SourceFile[]): Set<string> {
  return new Set(
    files
      .flatMap((file) => file.imports.map((one) => one.specifier))
      .filter((specifier) => !/^(\.|node:|bun:|#)/.test(specifier) && !builtinModules.includes(specifier))
      .map(packageOf),
  )
}

function checkExports(root: string, { row }: Workspace, manifest: Manifest, say: Say): Finding[] {
  if (manifest.files === undefined) return []
  const entries = Object.entries(manifest.exports ?? {}).filter(([path]) => path !== './package.json')
  const findings = entries.flatMap(([path, target]) => {
    if (typeof target === 'string')
      return [say('manifest-exports', `${path} needs ${SOURCE}, types and default`)]
    const keys = Object.keys(target)
    const source = target[SOURCE] ?? ''
    return [
      ...(isDeepStrictEqual(keys, [SOURCE, 'types', 'default'])
        ? []
        : [say('manifest-exports', `${path} has ${keys.join(', ')}, not ${SOURCE}, types, default`)]),
      ...(existsSync(join(root, row.dir, source))
        ? []
        : [say('manifest-exports', `${path} names a file that is not there: ${source}`)]),
    ]
  })
  if (entries.length === 0) findings.push(say('manifest-exports', 'it exports nothing'))
  if (row.published && !isDeepStrictEqual(manifest.publishConfig?.exports, withoutSource(manifest))) {
    findings.push(say('manifest-exports', `publishConfig.exports must be exports without ${SOURCE}`))
  }
  return findings
}

function withoutSource(manifest: Manifest): Record<string, ExportTarget> {
  const kept = Object.entries(manifest.exports ?? {}).map(([path, target]) => {
    if (typeof target === 'string') return [path, target] as const
    return [path, Object.fromEntries(Object.entries(target).filter(([key]) => key !== SOURCE))] as const
  })
  return Object.fromEntries(kept)
}
