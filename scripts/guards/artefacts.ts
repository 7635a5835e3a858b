import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Finding, fail } from './finding.ts'
import { TABLE } from './table.ts'

/** What stands in a packed package: path in it and text. */
export type Packed = ReadonlyMap<string, string>

const PRIVATE = TABLE.filter((row) => !row.published).map((row) => row.name)
const SHIPPED = /^(dist\/|README\.md$|CHANGELOG\.md$|LICENSE$|package\.json$)/
/** Names that only host code has: none of them may stand in a program that runs inside. */
const HOST_ONLY = [
  'dockerode',
  'undici',
  'openSealedBroker',
  'resolveCredential',
  '@sandbox/credential-scope',
]

/** Guard D: what is packed is what was meant. Needs `pnpm build` to have run. */
export function checkArtefacts(root: string): Finding[] {
  const folder = mkdtempSync(join(tmpdir(), 'artefacts-'))
  try {
    return TABLE.filter((row) => row.published).flatMap((row) =>
      checkPacked(row.name, pack(join(root, row.dir), folder)),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Judges one packed package. */
export function checkPacked(name: string, packed: Packed): Finding[] {
  const say = (where: string, problem: string) => fail('artefacts', `${name}: ${where}`, problem)
  const manifest = packed.get('package.json') ?? '{}'
  const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(manifest)
  const needed = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies })
  const paths = [...packed.keys()]
  const guests = paths.filter((path) => path.startsWith('dist/guest/') && /\.[cm]?js$/.test(path))
  return [
    ...['@sandbox/source', 'workspace:', 'catalog:']
      .filter((text) => manifest.includes(text))
      .map((text) => say('package.json', `it still holds ${text}`)),
    ...needed
      .filter((one) => PRIVATE.includes(one))
      .map((one) => say('package.json', `it needs ${one}, which is private`)),
    ...['README.md', 'LICENSE', 'dist/index.js', 'dist/index.d.ts']
      .filter((path) => !packed.has(path))
      .map((path) => say(path, 'it is missing')),
    ...paths.filter((path) => !SHIPPED.test(path)).map((path) => say(path, 'it is packed')),
    ...paths.filter((path) => /\.test\.|\/testing\//.test(path)).map((path) => say(path, 'a test is packed')),
    ...guests.flatMap((path) =>
      HOST_ONLY.filter((text) => packed.get(path)?.includes(text)).map((text) =>
        say(path, `a program that runs inside holds ${text}`),
      ),
    ),
    ...(name === '@sandbox/docker-worker' && guests.length === 0 ? [say('dist/guest', 'no guest')] : []),
  ]
}

function pack(dir: string, folder: string): Packed {
  const answer = execFileSync('pnpm', ['pack', '--json', '--pack-destination', folder], {
    cwd: dir,
    encoding: 'utf8',
  })
  const { filename } = JSON.parse(answer) as { filename: string }
  const archive = filename.startsWith('/') ? filename : join(folder, filename)
  const list = execFileSync('tar', ['-tzf', archive], { encoding: 'utf8' }).trim().split('\n')
  return new Map(list.map((path) => [path.replace(/^package\//, ''), textOf(archive, path)]))
}

function textOf(archive: string, path: string): string {
  return /\.([cm]?js|json|d\.ts)$/.test(path)
    ? execFileSync('tar', ['-xzOf', archive, path], { encoding: 'utf8', maxBuffer: 2 ** 26 })
    : ''
}
