import { limits } from '@sandbox/protocol'
import { readArguments } from '../shared/arguments.ts'
import { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { guestLog, runGuest } from '../shared/guest-program.ts'
import { HostDesk } from '../shared/host-desk.ts'
import { readPosture } from '../shared/posture.ts'
import { readTurnId } from '../shared/turn-id.ts'
import { failedOutcome, runTurn } from './run-turn.ts'
import { readTurn } from './turn-check.ts'

const NAME = 'sealed worker'

/**
 * The program inside a sealed container: says hello, takes one turn from its socket, runs it, hands in the
 * outcome, ends. It is done, exit code 0, also when the turn failed or the host has no turn.
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
    turn === undefined
      ? failedOutcome('turn_invalid')
      : await runTurn({ turn, wire, workspace, log: guestLog(NAME) })
  await desk.result(turnId, outcome)
  wire.close()
}

runGuest(NAME, main)
