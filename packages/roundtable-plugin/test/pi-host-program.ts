/**
 * A host with a Pi runtime, of its own process: `pi-host-program.ts <options as JSON>`. Says `ready`, runs one turn, and
 * prints its reply.
 */
import { PiSandboxRuntime } from '../src/pi-defaults.ts'
import type { PiSandboxRuntimeOptions } from '../src/pi-options.ts'
import type { PiTurnRequest } from '../src/runtime/pi-turn-input.ts'

type Given = Omit<PiSandboxRuntimeOptions, 'oauthToken'> & { oauthToken: string; turn: PiTurnRequest }
const { oauthToken, turn, ...options } = JSON.parse(process.argv[2] ?? '') as Given
const runtime = new PiSandboxRuntime({ ...options, oauthToken: () => oauthToken })
await runtime.check()
process.stdout.write('ready\n')
const reply = await runtime.runTurn(turn)
process.stdout.write(`${JSON.stringify(reply)}\n`)
await runtime.dispose()
