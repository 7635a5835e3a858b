import { checkArtefacts } from './artefacts.ts'
import { checkBudgets } from './budgets.ts'
import { checkDocuments } from './documents.ts'
import type { Finding } from './finding.ts'
import { checkImports } from './imports.ts'
import { checkManifests } from './manifests.ts'
import { checkNames } from './name-fences.ts'
import { checkPromises } from './promises.ts'
import { readWorkspaces } from './source-tree.ts'
import { checkSurface, SURFACE_FILE, updateSurface } from './surface.ts'

const USAGE = 'guards [--update | --packed]: --update pins the surface anew, --packed checks what pnpm packs'

/** `pnpm guards`: prints what the guards found; exit code 1 when something fails. */
async function main(args: readonly string[]): Promise<number> {
  if (args.length > 1 || !['--update', '--packed', undefined].includes(args[0])) {
    console.error(USAGE)
    return 2
  }
  const root = process.cwd()
  if (args[0] === '--packed') return report([['artefacts', checkArtefacts(root)]])
  const workspaces = readWorkspaces(root)
  if (args[0] === '--update') {
    updateSurface(root, workspaces)
    console.log(`guards: ${SURFACE_FILE} written`)
  }
  return report([
    ['imports', [...(await checkImports(root)), ...checkNames(workspaces)]],
    ['manifests', checkManifests(root, workspaces)],
    ['budgets', checkBudgets(root, workspaces)],
    ['surface', checkSurface(root, workspaces)],
    ['promises', checkPromises(root)],
    ['documents', checkDocuments(root, workspaces)],
  ])
}

function report(guards: readonly [string, readonly Finding[]][]): number {
  for (const [name, findings] of guards) print(name, findings)
  return guards.some(([, findings]) => findings.some((one) => one.level === 'fail')) ? 1 : 0
}

function print(guard: string, findings: readonly Finding[]): void {
  const failed = findings.filter((one) => one.level === 'fail').length
  const shown = findings.length - failed
  console.log(
    `${guard}: ${failed === 0 ? 'ok' : `${failed} failed`}${shown > 0 ? `, ${shown} to look at` : ''}`,
  )
  for (const { level, rule, where, problem } of findings) {
    console.log(`  ${level === 'fail' ? 'FAIL' : 'look'}  ${where}  [${rule}] ${problem}`)
  }
}

process.exitCode = await main(process.argv.slice(2))
