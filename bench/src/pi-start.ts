import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildImage, createDockerDriver, type Driver, engineSocketPath } from '@sandbox/docker-worker'
import { openPiDesk } from './pi-desk.ts'
import { type BenchRow, median, quantile } from './report.ts'
import { account, quiet } from './turn-start-lane.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 15)
const PACKAGE = join(dirname(fileURLToPath(import.meta.resolve('@sandbox/docker-worker'))), '..')
const GUEST = join(PACKAGE, 'dist', 'guest')

/** How a Pi worker may be started; the first is what an image does. */
const NAMES = {
  product: 'bundle and code cache, as in its image',
  bundle: 'bundle without code cache',
  unbundled: 'the import of the agent’s SDK alone, as npm installs it',
} as const

type Way = keyof typeof NAMES

/** One start: time to the first poll, and the memory of the process then. */
interface Start {
  readonly readyMs: number
  readonly rssMiB: number
}

/** Starts of a Pi worker as a bare process in three ways, one after the other in every round; then in containers. */
export async function run(): Promise<readonly BenchRow[]> {
  const state = mkdtempSync(join(tmpdir(), 'sbx-pi-'))
  chmodSync(state, 0o711)
  try {
    const programs = makePrograms(state)
    const starts = new Map<Way, Start[]>()
    for (let round = 0; round <= ROUNDS; round++) {
      // The first round is warm-up.
      for (const way of Object.keys(NAMES) as Way[]) {
        await quiet()
        const start = await startProcess(state, programs[way])
        if (round > 0) starts.set(way, [...(starts.get(way) ?? []), start])
      }
      process.stderr.write(`\rround ${round} of ${ROUNDS}${round === ROUNDS ? '\n' : ''}`)
    }
    return [...processRows(starts), ...(await containerRows(state))]
  } finally {
    rmSync(state, { recursive: true, force: true })
  }
}

/** Node's arguments for each way. The code cache is made as the build of an image makes it. */
function makePrograms(state: string): Readonly<Record<Way, readonly string[]>> {
  const place = join(state, 'image')
  mkdirSync(place)
  for (const name of ['pi-start.cjs', 'pi-agent.cjs']) copyFileSync(join(GUEST, name), join(place, name))
  const [start, agent] = [join(place, 'pi-start.cjs'), join(place, 'pi-agent.cjs')]
  execFileSync(process.execPath, [start, '--make-cache', join(place, 'pi-agent.cache'), agent], {
    stdio: ['ignore', 'ignore', 'ignore'],
    env: {},
  })
  return {
    product: ['--disable-warning=ExperimentalWarning', start],
    bundle: [agent],
    unbundled: [importOnly(state)],
  }
}

/** The least that an unbundled worker would do: import the SDK, then ask for a turn. */
function importOnly(state: string): string {
  const sdk = join(PACKAGE, 'node_modules', '@earendil-works', 'pi-coding-agent', 'dist', 'index.js')
  const program = join(state, 'unbundled.mjs')
  writeFileSync(
    program,
    `import { request } from 'node:http'
    await import(${JSON.stringify(sdk)})
    request({ socketPath: process.argv[process.argv.indexOf('--socket') + 1], path: '/worker/next' }).end()`,
  )
  return program
}

async function startProcess(state: string, program: readonly string[]): Promise<Start> {
  await using desk = await openPiDesk(state)
  const args = [
    ...program,
    '--socket',
    desk.socketPath,
    '--workspace',
    desk.workspaceDir,
    '--content',
    '/dev/null',
  ]
  const begin = performance.now()
  const child = spawn(process.execPath, args, { env: {}, cwd: '/', stdio: 'ignore' })
  const ended = once(child, 'close')
  await Promise.race([desk.polled, ended.then(() => Promise.reject(new TypeError('the worker ended early')))])
  const readyMs = performance.now() - begin
  const rssMiB = residentMiB(child.pid ?? 0)
  child.kill('SIGKILL')
  await ended
  return { readyMs, rssMiB }
}

function residentMiB(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kib) / 1024
}

function processRows(starts: ReadonlyMap<Way, readonly Start[]>): BenchRow[] {
  const of = (way: Way, pick: (start: Start) => number) => (starts.get(way) ?? []).map(pick)
  const rows = (id: string, unit: string, pick: (start: Start) => number, goal: string | undefined) => {
    const peer = median(of('unbundled', pick))
    return ([...starts.keys()] as Way[]).map((way) => ({
      id: way === 'product' ? id : `${id}.${way}`,
      what: NAMES[way],
      unit,
      value: median(of(way, pick)),
      p99: quantile(of(way, pick), 0.99),
      peer,
      ratio: median(of(way, pick)) / peer,
      ...(way === 'product' && goal !== undefined ? { goal } : {}),
    }))
  }
  return [
    ...rows('pi.cold.ready', 'ms', ({ readyMs }) => readyMs, '<= 0.6'),
    ...rows('pi.ready.rss', 'MiB', ({ rssMiB }) => rssMiB, undefined),
  ]
}

/** What an operator has: the whole container, from the call that starts it to the worker's first poll. */
async function containerRows(state: string): Promise<BenchRow[]> {
  const engineSocket = process.env.SANDBOX_DOCKER_SOCKET ?? engineSocketPath(process.env)
  const tag = 'sandbox-bench-pi:1'
  const told: string[] = []
  await buildImage({ guest: 'pi', tag, engineSocket, onProgress: (line) => told.push(line) })
  const [, sizeMiB = 'NaN'] = /^content .* (\d+) MiB$/m.exec(told.join('\n')) ?? []
  await using driver = createDockerDriver({
    guest: 'pi',
    image: tag,
    engineSocket,
    installId: `bench-pi-${randomBytes(4).toString('hex')}`,
    user: account,
  })
  await driver.check()
  const times: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    await quiet()
    const readyMs = await startContainer(state, driver)
    if (round > 0) times.push(readyMs)
  }
  const handovers = await handOver(state, driver)
  return [
    {
      id: 'pi.handover',
      what: 'from a turn handed to a resident worker to its first model call',
      unit: 'ms',
      value: median(handovers),
      p99: quantile(handovers, 0.99),
      goal: '<= 30',
    },
    {
      id: 'pi.cold.container',
      what: 'the whole container, as in production',
      unit: 'ms',
      value: median(times),
      p99: quantile(times, 0.99),
    },
    { id: 'pi.image.size', what: 'image, layers together', unit: 'MiB', value: Number(sizeMiB) },
  ]
}

/** Turn after turn of one worker; the first, which has everything to load, does not count. */
async function handOver(state: string, driver: Driver): Promise<readonly number[]> {
  await using desk = await openPiDesk(state)
  const worker = await driver.start(specOf(desk))
  const times: number[] = []
  for (let turn = 0; turn <= ROUNDS * 3; turn++) {
    await quiet()
    const time = await desk.play()
    if (turn > 0) times.push(time)
  }
  await worker.remove()
  return times
}

async function startContainer(state: string, driver: Driver): Promise<number> {
  await using desk = await openPiDesk(state)
  const begin = performance.now()
  const worker = await driver.start(specOf(desk))
  await desk.polled
  const readyMs = performance.now() - begin
  await worker.remove()
  return readyMs
}

function specOf({ socketPath, workspaceDir }: { socketPath: string; workspaceDir: string }) {
  return {
    workerId: randomBytes(8).toString('hex'),
    channelHash: 'b'.repeat(64),
    epoch: 'bench',
    runDir: dirname(socketPath),
    workspaceDir,
  }
}
