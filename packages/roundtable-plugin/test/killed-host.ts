import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What Node 22 needs to run our sources as they are; later ones and Bun need nothing. */
const lowered = new URL('lowered.mjs', import.meta.url).href
const flags =
  process.versions.bun === undefined && Number(process.versions.node.split('.')[0]) < 24
    ? ['--import', `data:text/javascript,import{register}from'node:module';register('${lowered}')`]
    : []

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
  const args = ['--conditions=@sandbox/source', ...flags, path, JSON.stringify(options)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return { child, output: () => text, ended: once(child, 'exit') }
}
