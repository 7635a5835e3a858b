import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { sourceFlags } from '@sandbox/testing'

/** Starts a host of its own process, `host-program.ts` or another; its stdout is collected. */
export function startHost(
  options: object,
  program = 'host-program.ts',
): {
  child: ChildProcess
  output: () => string
  ended: Promise<unknown>
} {
  const path = fileURLToPath(new URL(program, import.meta.url))
  const args = [...sourceFlags, path, JSON.stringify(options)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return { child, output: () => text, ended: once(child, 'exit') }
}
