import { mkdirSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { createDockerDriver, type Driver } from '@sandbox/docker-worker'
import type { DriverInstall } from '../src/options.ts'
import { PiSandboxRuntime } from '../src/pi-defaults.ts'
import { ENGINE } from './engine.ts'
import { type AgentKit, agentKit, withTool } from './pi-agent-kit.ts'

const runtimeName = process.versions.bun === undefined ? 'node' : 'bun'
/** The image of the tests of Pi mode. */
export const IMAGE = `sandbox-test-pi-plugin:${runtimeName}`

/** A kit on an engine, with a look at the driver and the install. */
export async function kitOn(
  engineSocket: string,
  wrap: (driver: Driver, free: string) => Driver = (driver) => driver,
) {
  let install: DriverInstall | undefined
  const kit = await agentKit((given) => {
    install = given
    const { installId, user } = given
    const driver = createDockerDriver({ image: IMAGE, guest: 'pi', installId, user, engineSocket })
    const free = join(given.runRoot, '..', 't')
    mkdirSync(free, { mode: 0o711 })
    return wrap(driver, free)
  })
  return Object.assign(kit, { installId: (install as unknown as DriverInstall).installId })
}

/** The whole conversation of the turns before is in a call. */
export function remembers(kit: AgentKit, text: string): boolean {
  return JSON.stringify(kit.service.calls.at(-1)?.body.messages).includes(text)
}

/** Hangs at the second call of the next turn. */
export function hangAfterTool(kit: AgentKit): Promise<void> {
  return new Promise((hung) => {
    kit.service.answer = (call) => {
      if (call.toolResult === undefined) return withTool(call)
      hung()
      return 'hang'
    }
  })
}

/** The same roots, taken by another runtime in this process. */
export async function nextKit(kit: AgentKit) {
  const { driver: _, ...options } = kit.options
  const runtime = new PiSandboxRuntime({ ...options, driver: 'docker', image: IMAGE, engineSocket: ENGINE })
  return { runtime, [Symbol.asyncDispose]: () => runtime.dispose() }
}

/** A POST to an engine, without a body. */
export async function enginePost(socketPath: string, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const sent = request({ socketPath, path, method: 'POST', headers: { host: 'engine' } }, (answer) => {
      answer.resume()
      answer.on('end', () => resolve())
    })
    sent.on('error', reject)
    sent.end()
  })
}
