import { type PrecheckOptions, precheckBroker } from '@sandbox/broker/mcp'
import { redact } from '@sandbox/credential-scope'
import { createDockerDriver, createProcessDriver, type Driver } from '@sandbox/docker-worker'
import { accountOf, checkDriverChoice, earlierOf } from '../defaults.ts'
import { guardedLogger } from '../guarded-logger.ts'
import { mindEarlierContainers } from '../runtime/earlier-containers.ts'
import { RunPlaces } from './run-places.ts'
import { RunQueue } from './run-queue.ts'
import { type PrecheckRunnerOptions, resolvePrecheckPolicy } from './runner-options.ts'
import { SandboxPrecheckRunner } from './script-runner.ts'

/**
 * Makes a runner of precheck scripts: hand it to a host's `useScriptRunner`, and dispose of it when the host stops.
 * Everything that can be checked without an engine is checked here; the engine and the image by the first run.
 * @throws SandboxPluginError or DriverError, each naming the option and how to mend it
 */
export function precheckScriptRunner(options: PrecheckRunnerOptions): SandboxPrecheckRunner {
  const policy = resolvePrecheckPolicy(options)
  checkDriverChoice(options)
  const places = new RunPlaces({ runRoot: options.runRoot, user: accountOf(options) })
  try {
    const { logger } = options
    const told = { ...(logger && { logger: guardedLogger(logger) }) }
    const driver = mindEarlierContainers(makeDriver(options, places), earlierOf(options, places))
    const openBroker = (run: Parameters<SandboxRunPorts['openBroker']>[0]) =>
      precheckBroker({ ...run, maxCalls: policy.maxCalls, ...hooksOf(options) })
    const queue = new RunQueue(policy)
    return new SandboxPrecheckRunner({ places, queue, driver, openBroker, scrub: redact, ...told }, policy)
  } catch (cause) {
    places.close()
    throw cause
  }
}

type SandboxRunPorts = ConstructorParameters<typeof SandboxPrecheckRunner>[0]

function makeDriver(options: PrecheckRunnerOptions, places: RunPlaces): Driver {
  const { driver } = options
  const { installId, user, runRoot } = places
  if (typeof driver === 'function') return driver({ installId, user, runRoot })
  if (driver === 'process') return createProcessDriver({ guest: 'precheck', runRoot, user, scrub: redact })
  const { image = '', engineSocket } = options
  const socket = { ...(engineSocket !== undefined && { engineSocket }) }
  return createDockerDriver({ guest: 'precheck', image, installId, user, scrub: redact, ...socket })
}

function hooksOf({
  credit,
  onReceipt,
  onCall,
}: PrecheckRunnerOptions): Pick<PrecheckOptions, 'credit' | 'onReceipt' | 'onCall'> {
  return {
    ...(credit && { credit }),
    ...(onReceipt && { onReceipt }),
    ...(onCall && { onCall }),
  }
}
