import { Console } from 'node:console'
import { limits } from '@sandbox/protocol'
import { readArguments } from '../shared/arguments.ts'
import { BrokerWire } from '../shared/broker-wire.ts'
import { GuestError } from '../shared/errors.ts'
import { runGuest } from '../shared/guest-program.ts'
import { HostDesk } from '../shared/host-desk.ts'
import { readPosture } from '../shared/posture.ts'
import { readTurnId } from '../shared/turn-id.ts'
import { readJob } from './job-check.ts'
import { failed, runScript } from './run-script.ts'

/**
 * The program inside the container of a precheck: says hello, takes one job from its socket, runs the script in it, hands
 * in what that decided, ends, even with timers of the script left. What the script logs goes to stderr (PC-13).
 */
async function main(args: readonly string[]): Promise<void> {
  const { socket } = readArguments(args)
  globalThis.console = new Console(process.stderr)
  const wire = new BrokerWire(socket)
  const desk = new HostDesk(wire, { mode: 'precheck', turnBytes: limits.PRECHECK_MESSAGE_BYTES })
  await desk.hello(readPosture())
  const delivered = await desk.next()
  if (delivered === undefined) return
  const turnId = readTurnId(delivered)
  if (turnId === undefined) throw new GuestError('refused', 'next: the job has no id')
  await desk.ack(turnId)
  const job = readJob(delivered)
  const outcome =
    job === undefined ? failed('The job could not be read by this worker.') : await runScript(job, wire)
  await desk.result(turnId, outcome)
  wire.close()
}

runGuest('precheck worker', main)
