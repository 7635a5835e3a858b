/** A host of its own process: `host-program.ts <options as JSON>`. Says `ready`, runs one turn, prints its reply. */
import { SandboxRuntime } from '../src/defaults.ts'
import type { SandboxRuntimeOptions } from '../src/options.ts'

const { apiKey, ...options } = JSON.parse(process.argv[2] ?? '') as Omit<SandboxRuntimeOptions, 'apiKey'> & {
  apiKey: string
}
const runtime = new SandboxRuntime({ ...options, apiKey: () => apiKey })
await runtime.start()
process.stdout.write('ready\n')
const reply = await runtime.runTurn('fake:1', { id: 'u-ann', name: 'Ann' }, 'hello')
process.stdout.write(`${JSON.stringify(reply)}\n`)
await runtime.dispose()
