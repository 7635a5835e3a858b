/**
 * A host of its own process: `host-program.ts <options as JSON>`. Says `ready`, runs one turn, prints its reply. With
 * `keepWarm`, channels: says `warm` when a worker waits for each, and stays. With `killAt` it kills itself when its turn
 * has come to that state: at once, in the middle of the step, or so many milliseconds later.
 */
import { SandboxRuntime } from '../src/defaults.ts'
import type { ChannelKey } from '../src/host-contract.ts'
import type { SandboxRuntimeOptions } from '../src/options.ts'
import type { TurnEvent } from '../src/runtime/turn-state.ts'

type Given = Omit<SandboxRuntimeOptions, 'apiKey'> & {
  apiKey: string
  keepWarm?: ChannelKey[]
  killAt?: { state: TurnEvent['state']; afterMs: number }
}
const { apiKey, keepWarm, killAt, ...options } = JSON.parse(process.argv[2] ?? '') as Given
const die = () => process.kill(process.pid, 'SIGKILL')
const runtime = new SandboxRuntime({
  ...options,
  apiKey: () => apiKey,
  onTurn: ({ state }) => {
    if (state !== killAt?.state) return
    if (killAt.afterMs === 0) die()
    else setTimeout(die, killAt.afterMs)
  },
})
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
// One that is to die later than its reply stays until then.
if (killAt) await new Promise((done) => setTimeout(done, 60_000))
await runtime.dispose()
