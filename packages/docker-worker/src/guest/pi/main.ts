import { mkdtempSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readArguments } from '../shared/arguments.ts'
import { GuestError } from '../shared/errors.ts'
import { CONTENT_DIR } from './places.ts'
import { warmUp } from './warm-up.ts'
import { runPiWorker } from './worker.ts'

/**
 * The program inside a Pi container: says hello, takes turn after turn from its socket, and runs each with the real
 * Pi agent. `[--socket PATH] [--workspace PATH] [--content DIR]`. Its exit codes: 0 the host has no more turns · 1 a
 * fault of its own · 2 wrong arguments · 3 refused by the host · 4 no connection to the host · 5 the operator's content
 * cannot be used.
 */
async function main(args: readonly string[]): Promise<void> {
  if (args[0] === '--warm-up') return warmUpElsewhere()
  const { socket, workspace, more } = readArguments(args, { content: CONTENT_DIR })
  await runPiWorker({ socket, workspace, content: more.content })
}

async function warmUpElsewhere(): Promise<void> {
  const workspace = mkdtempSync(join(tmpdir(), 'pi-warm-'))
  try {
    await warmUp(workspace)
  } finally {
    rmSync(workspace, { recursive: true, force: true })
  }
}

function exitCode(error: unknown): number {
  if (!GuestError.isInstance(error)) return 1
  const codes: Partial<Record<GuestError['code'], number>> = {
    usage: 2,
    internal: 1,
    connection_lost: 4,
    timeout: 4,
    content_invalid: 5,
  }
  return codes[error.code] ?? 3
}

function say(line: string): void {
  try {
    writeSync(2, `pi worker: ${line}\n`)
  } catch {
    // Nobody listens.
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    say(error instanceof Error ? error.message : 'failed')
    process.exit(exitCode(error))
  },
)
