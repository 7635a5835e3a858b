import { join } from 'node:path'
import { redact } from '@sandbox/credential-scope'
import { PiSandboxBroker } from '@sandbox/pi-broker'
import { openPiLayout, type PiLayout } from '../src/runtime/pi-layout.ts'
import { type PiPolicyOptions, resolvePiPolicy } from '../src/runtime/pi-policy.ts'
import type { PiBrokerPort, PiRuntimePorts } from '../src/runtime/pi-ports.ts'
import { PiRuntime } from '../src/runtime/pi-runtime.ts'
import type { PiTurnRequest } from '../src/runtime/pi-turn-input.ts'
import type { TurnEvent } from '../src/runtime/turn-state.ts'
import { ownDir, userOptions } from './account.ts'
import { ManualClock } from './manual-clock.ts'
import { recordingLogger } from './messages.ts'
import { type GuestScript, type WireDriver, wireDriver } from './pi-guest.ts'

/** A Pi runtime over guests of this process, on real sockets. */
export interface PiKit extends AsyncDisposable {
  readonly runtime: PiRuntime
  readonly driver: WireDriver
  readonly layout: PiLayout
  readonly clock: ManualClock
  readonly turns: TurnEvent[]
  readonly lines: ReturnType<typeof recordingLogger>['lines']
  /** Brokers that were opened, in order. */
  readonly brokers: PiBrokerPort[]
  /** Runs one turn of Ann in `fake:1`. */
  say(text: string, more?: Partial<PiTurnRequest>): ReturnType<PiRuntime['runTurn']>
}

export interface PiKitOptions {
  readonly script?: GuestScript
  readonly policy?: Partial<PiPolicyOptions>
  readonly ports?: Partial<PiRuntimePorts>
}

export function piKit({ script, policy, ports }: PiKitOptions = {}): PiKit {
  const directory = ownDir()
  const layout = openPiLayout({ partyDir: join(directory.path, 'p'), user: userOptions })
  const driver = wireDriver(script)
  const clock = new ManualClock()
  const turns: TurnEvent[] = []
  const brokers: PiBrokerPort[] = []
  const { logger, lines } = recordingLogger()
  const runtime = new PiRuntime(
    {
      layout,
      driver,
      openBroker: () => {
        const broker = new PiSandboxBroker({ model: 'm', oauthToken: () => undefined })
        brokers.push(broker)
        return broker
      },
      scrub: redact,
      onTurn: (event) => turns.push(event),
      logger,
      clock,
      ...ports,
    },
    resolvePiPolicy({ model: 'm', profiles: { default: {}, other: {} }, ...policy }, { mcp: [], tools: [] }),
  )
  return {
    runtime,
    driver,
    layout,
    clock,
    turns,
    lines,
    brokers,
    say: (text, more) =>
      runtime.runTurn({
        channel: 'fake:1',
        profile: 'default',
        speaker: { id: 'u-ann', name: 'Ann' },
        text,
        ...more,
      }),
    async [Symbol.asyncDispose]() {
      await runtime.dispose()
      directory[Symbol.dispose]()
    },
  }
}

/** Waits until something is true, for the end of things that nobody can await. Throws when that never comes. */
export async function until(condition: () => boolean): Promise<void> {
  for (let left = 20_000; !condition(); left -= 5) {
    if (left < 0) throw new TypeError(`never came true: ${condition}`)
    await new Promise((done) => setTimeout(done, 5))
  }
}
