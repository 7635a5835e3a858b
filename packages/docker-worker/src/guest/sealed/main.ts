import { writeSync } from 'node:fs'
import { limits } from '@sandbox/protocol'
import { readArguments } from '../shared/arguments.ts'
import { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { HostDesk } from '../shared/host-desk.ts'
import { readPosture } from '../shared/posture.ts'
import { readTurnId } from '../shared/turn-id.ts'
import { failedOutcome, runTurn } from './run-turn.ts'
import { readTurn } from './turn-check.ts'

/**
 * The program inside a sealed container: says hello, takes one turn from its socket, runs it, hands in the
 * outcome, ends. Its exit codes: 0 done, also when the turn failed or the host has no turn · 1 a fault of its
 * own · 2 wrong arguments · 3 refused by the host · 4 no connection to the host.
 */
async function main(args: readonly string[]): Promise<void> {
  const { socket, workspace } = readArguments(args)
  const wire = new BrokerWire(socket)
  const desk = new HostDesk(wire, { mode: 'sealed', turnBytes: limits.SEALED_TURN_BYTES })
  await desk.hello(readPosture())
  const delivered = await desk.next()
  if (delivered === undefined) return
  const turnId = readTurnId(delivered)
  if (turnId === undefined) throw new GuestError('refused', 'next: the turn has no id')
  await desk.ack(turnId)
  const turn = readTurn(delivered)
  const outcome =
    turn === undefined ? failedOutcome('turn_invalid') : await runTurn({ turn, wire, workspace, log })
  await desk.result(turnId, outcome)
  wire.close()
}

function exitCode(error: unknown): number {
  if (!GuestError.isInstance(error)) return 1
  if (error.code === 'usage') return 2
  return error.code === 'connection_lost' || error.code === 'timeout' ? 4 : 3
}

/** One line on stderr: diagnostics only, nobody parses them. */
function log(line: string): void {
  try {
    writeSync(2, `sealed worker: ${line}\n`)
  } catch {
    // Nobody listens.
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(0),
  (error: unknown) => {
    log(error instanceof Error ? error.message : 'failed')
    process.exit(exitCode(error))
  },
)
