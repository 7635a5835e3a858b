import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readArguments } from '../shared/arguments.ts'
import { runGuest } from '../shared/guest-program.ts'
import { CONTENT_DIR } from './places.ts'
import { warmUp } from './warm-up.ts'
import { runPiWorker } from './worker.ts'

/**
 * The program inside a Pi container: says hello, takes turn after turn from its socket, and runs each with the real
 * Pi agent. `[--socket PATH] [--workspace PATH] [--content DIR]`. It is done, exit code 0, when the host has no more
 * turns.
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

runGuest('pi worker', main)
