import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What Node 22 needs to run our sources as they are; later ones and Bun need nothing. */
const lowered = new URL('lowered.mjs', import.meta.url).href
const flags =
  process.versions.bun === undefined && Number(process.versions.node.split('.')[0]) < 24
    ? ['--import', `data:text/javascript,import{register}from'node:module';register('${lowered}')`]
    : []

const program = fileURLToPath(new URL('host-program.ts', import.meta.url))

/** Starts `host-program.ts` as a process of its own; its stdout is collected. */
export function startHost(options: object): {
  child: ChildProcess
  output: () => string
  ended: Promise<unknown>
} {
  const args = ['--conditions=@sandbox/source', ...flags, program, JSON.stringify(options)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  return { child, output: () => text, ended: once(child, 'exit') }
}
