import { connect } from 'node:net'
import { engineSocketPath } from '@sandbox/docker-worker'
import type { DriverConfig } from './config.ts'
import { BotError } from './errors.ts'

/** Where the workers run. */
export type DriverPlace =
  | { readonly kind: 'docker'; readonly isolation: 'container'; readonly engineSocket: string }
  /** `reason` says why there is no container, for people. */
  | { readonly kind: 'process'; readonly isolation: 'none'; readonly reason: string }

/** Options of {@link chooseDriver}. */
export interface ChooseDriverOptions extends DriverConfig {
  /** Where an engine is looked for when none was named; default `/var/run/docker.sock`. */
  readonly usualSocket?: string
  readonly signal?: AbortSignal
}

const ANSWER_MS = 5_000

/**
 * Chooses between containers and a plain process. A process is chosen by itself only when nobody asked for
 * containers: no `docker`, no image, no named engine.
 *
 * @throws BotError `engine` when containers were asked for and no engine answers.
 */
export async function chooseDriver(options: ChooseDriverOptions): Promise<DriverPlace> {
  const { driver, image } = options
  if (driver === 'process') return process('--driver process was given')
  const engineSocket = options.engineSocket ?? options.usualSocket ?? engineSocketPath({})
  const problem = await engineProblem(engineSocket, options.signal)
  if (problem === undefined) return { kind: 'docker', isolation: 'container', engineSocket }
  const asked = askedBy(options)
  if (asked === undefined) return process(`no container engine: ${problem}`)
  throw new BotError(
    'engine',
    `${asked}, but ${problem}. ${mend(problem)} To try the bot without any sandbox: --driver process${
      image === undefined ? '' : ', without --image'
    }, or "driver": "process" of "workers" in the configuration.`,
  )
}

function process(reason: string): DriverPlace {
  return { kind: 'process', isolation: 'none', reason }
}

function askedBy({ driver, image, engineSocket }: DriverConfig): string | undefined {
  if (driver === 'docker') return 'Containers were asked for with --driver docker'
  if (image !== undefined) return `The image ${image} was asked for`
  if (engineSocket !== undefined) return `The engine at ${engineSocket} was named by the environment`
  return undefined
}

function mend(problem: string): string {
  if (problem.includes('EACCES')) return "Join the group that the socket belongs to (often 'docker')."
  return 'Start the engine, or name its socket with SANDBOX_DOCKER_SOCKET.'
}

/**
 * Asks an engine whether it is there (`GET /_ping` of the Engine API): `undefined` when it is, else why not, for
 * people.
 */
export function engineProblem(
  path = engineSocketPath({}),
  signal?: AbortSignal,
): Promise<string | undefined> {
  return new Promise((done) => {
    const socket = connect({ path })
    let answer = ''
    const settle = (problem?: string): void => {
      clearTimeout(late)
      signal?.removeEventListener('abort', stop)
      socket.destroy()
      done(problem)
    }
    const stop = (): void => settle(`asking ${path} was called off`)
    const late = setTimeout(() => settle(`${path} gives no answer`), ANSWER_MS)
    signal?.addEventListener('abort', stop, { once: true })
    socket.on('connect', () => socket.write('GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n'))
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1')
      if (!answer.includes('\r\n')) return
      settle(/^HTTP\/1\.\d 200 /.test(answer) ? undefined : `${path} answers, but is no container engine`)
    })
    socket.on('end', () => settle(`${path} closes without an answer`))
    socket.on('error', (error: NodeJS.ErrnoException) => settle(unreachable(path, error.code)))
  })
}

function unreachable(path: string, code = 'unknown error'): string {
  if (code === 'ENOENT') return `there is no socket ${path}`
  if (code === 'EACCES') return `this account may not use ${path} (EACCES)`
  return `nothing answers on ${path} (${code})`
}
