/**
 * A host of its own process: `host-program.ts <options as JSON>`. Says `ready`, runs one turn, prints its reply. With
 * `keepWarm`, channels: says `warm` when a worker waits for each, and stays.
 */
import { SandboxRuntime } from '../src/defaults.ts'
import type { ChannelKey } from '../src/host-contract.ts'
import type { SandboxRuntimeOptions } from '../src/options.ts'

type Given = Omit<SandboxRuntimeOptions, 'apiKey'> & { apiKey: string; keepWarm?: ChannelKey[] }
const { apiKey, keepWarm, ...options } = JSON.parse(process.argv[2] ?? '') as Given
const runtime = new SandboxRuntime({ ...options, apiKey: () => apiKey })
await runtime.start()
process.stdout.write('ready\n')
for (const channel of keepWarm ?? []) runtime.warm(channel)
while (keepWarm?.some((channel) => !runtime.warmed().includes(channel))) {
  await new Promise((done) => setTimeout(done, 5))
}
if (keepWarm) {
  process.stdout.write('warm\n')
  setInterval(() => {}, 1_000)
  await new Promise(() => {})
}
const reply = await runtime.runTurn('fake:1', { id: 'u-ann', name: 'Ann' }, 'hello')
process.stdout.write(`${JSON.stringify(reply)}\n`)
await runtime.dispose()
