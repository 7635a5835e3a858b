import { randomBytes } from 'node:crypto'
import { chownSync, mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fingerprintOf } from '@sandbox/credential-scope'
import { PiSandboxRuntime, SandboxRuntime } from '@sandbox/roundtable-plugin'
import { chooseDriver } from '../choose-driver.ts'
import { startStandIn } from '../demo/stand-in-model.ts'
import { BotError } from '../errors.ts'
import { prepareDriver } from '../prepare-driver.ts'
import { ROOT_WORKER } from '../state-dir.ts'
import type { OperatorConfig } from './read-bot-file.ts'
import type { Mode } from './routes.ts'

const CHANNEL = 'room:doctor'

/**
 * Starts a worker as a turn would, from the real image on the real engine, in directories of its own. A sealed one
 * answers a message, through its socket and with a stand-in for the model; a Pi one loads its agent. Returns what was
 * found; nothing is left.
 *
 * @throws BotError `engine`, and the errors of the packages, with what to do.
 */
export async function tryWorker(config: OperatorConfig, mode: Mode): Promise<string> {
  const { driver = 'docker', engineSocket, image, piImage, piContent } = config.workers ?? {}
  const place = await chooseDriver({ driver, ...(engineSocket === undefined ? {} : { engineSocket }) })
  const log = () => {}
  const prepared = await prepareDriver(
    place,
    mode === 'pi' ? { guest: 'pi', image: piImage, piContent, log } : { guest: 'sealed', image, log },
  )
  const dir = join(tmpdir(), `sbx-doctor-${randomBytes(4).toString('hex')}`)
  const root = process.getuid?.() === 0
  mkdirSync(dir, { mode: root ? 0o711 : 0o700 })
  if (root) chownSync(dir, 0, 0)
  try {
    const common = { ...prepared, allowHttp: true, model: 'demo', ...(root ? ROOT_WORKER : {}) }
    return mode === 'pi' ? await tryPi(common, dir) : await trySealed(common, dir)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

type Common = Awaited<ReturnType<typeof prepareDriver>> & {
  readonly allowHttp: boolean
  readonly model: string
}

async function trySealed(common: Common, dir: string): Promise<string> {
  const service = await startStandIn({ keys: 'any', fingerprint: fingerprintOf })
  const runtime = new SandboxRuntime({
    ...common,
    runRoot: join(dir, 'run'),
    workspaceRoot: join(dir, 'work'),
    modelUrl: service.url,
    apiKey: () => 'sk-doctor-0123456789',
    warm: false,
  })
  try {
    await runtime.start()
    const began = performance.now()
    const reply = await runtime.runTurn(CHANNEL, { id: 'u-doctor', name: 'Doctor' }, 'hello')
    if (!reply.ok) throw new BotError('engine', `a worker started, and its turn failed: ${reply.text}`)
    return `answered a message in ${Math.round(performance.now() - began)} ms (${runtime.driver.isolation === 'none' ? 'NO sandbox' : 'container'})`
  } finally {
    await runtime.dispose()
    await service.close()
  }
}

async function tryPi({ content, ...common }: Common & { content?: string }, dir: string): Promise<string> {
  const runtime = new PiSandboxRuntime({
    ...common,
    ...(content === undefined ? {} : { content }),
    partyDir: join(dir, 'pi'),
    profiles: { default: {} },
    oauthToken: () => undefined,
  })
  try {
    await runtime.check()
    const began = performance.now()
    await runtime.start(CHANNEL, 'default')
    return `the Pi agent was ready in ${Math.round(performance.now() - began)} ms (${runtime.driver.isolation === 'none' ? 'NO sandbox' : 'container'})`
  } finally {
    await runtime.dispose()
  }
}
