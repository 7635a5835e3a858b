import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildImage, engineSocketPath } from '@sandbox/docker-worker'
import { SandboxRuntime, type SandboxRuntimeOptions, type TurnEvent } from '@sandbox/roundtable-plugin'
import { cliDriver } from './cli-driver.ts'
import { type BenchRow, median, quantile } from './report.ts'

type Way = 'product' | 'cli' | 'process'

/** One turn's times, from the moment in which the host handed it over. */
interface Sample {
  /** Until the first model call reached the broker. */
  readonly handoverMs: number
  /** Until the answer was at the host. */
  readonly replyMs: number
}

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 20)
const ways: readonly Way[] = ['product', 'cli', 'process']

/** Cold turns of the product, of `docker run` and of a bare process, one after the other in every round. */
export async function run(): Promise<readonly BenchRow[]> {
  const engineSocket = process.env.SANDBOX_DOCKER_SOCKET ?? engineSocketPath(process.env)
  const image = await buildImage({ engineSocket, onProgress: (line) => console.error(line) })
  await using model = await standInModel()
  const state = mkdtempSync(join(tmpdir(), 'sbx-bench-'))
  chmodSync(state, 0o711)
  const lanes = ways.map(
    (way) => new Lane(way, join(state, way), { engineSocket, image: image.tag, modelUrl: model.url }),
  )
  try {
    for (const lane of lanes) await lane.turn()
    for (const lane of lanes) lane.samples.length = 0
    for (let round = 0; round < ROUNDS; round++) {
      for (const lane of lanes) await lane.turn()
      process.stderr.write(`\rround ${round + 1} of ${ROUNDS}${round + 1 === ROUNDS ? '\n' : ''}`)
    }
  } finally {
    for (const lane of lanes) await lane.runtime.dispose()
    rmSync(state, { recursive: true, force: true })
  }
  return rows(new Map(lanes.map((lane) => [lane.way, lane.samples])))
}

/** One way to start a worker, with everything else the same. */
class Lane {
  readonly way: Way
  readonly samples: Sample[] = []
  readonly runtime: SandboxRuntime
  #began = 0
  #handover: number | undefined
  #reply: number | undefined

  constructor(way: Way, state: string, parts: { engineSocket: string; image: string; modelUrl: string }) {
    this.way = way
    const root = process.getuid?.() === 0
    // The worker's account must be able to pass through it.
    mkdirSync(state)
    chmodSync(state, 0o711)
    this.runtime = new SandboxRuntime({
      ...(way === 'process' ? {} : { image: parts.image, engineSocket: parts.engineSocket }),
      runRoot: join(state, 'r'),
      workspaceRoot: join(state, 'w'),
      model: 'bench',
      modelUrl: parts.modelUrl,
      allowHttp: true,
      apiKey: () => {
        this.#handover ??= performance.now() - this.#began
        return 'sk-bench-0123456789abcdef'
      },
      onTurn: (event) => this.#heard(event),
      ...(root ? { uid: 64_200, gid: 64_200 } : {}),
      driver: driverOf(way, parts),
    })
  }

  async turn(): Promise<void> {
    this.#handover = undefined
    this.#reply = undefined
    this.#began = performance.now()
    const reply = await this.runtime.runTurn('bench:one', { id: 'u1', name: 'Ann' }, 'hello')
    if (!reply.ok || this.#handover === undefined || this.#reply === undefined) {
      throw new TypeError(`bench: a turn by ${this.way} failed: ${JSON.stringify(reply)}`)
    }
    this.samples.push({ handoverMs: this.#handover, replyMs: this.#reply })
  }

  #heard(event: TurnEvent): void {
    if (event.state === 'settling') this.#reply = performance.now() - this.#began
  }
}

function driverOf(
  way: Way,
  parts: { engineSocket: string; image: string },
): NonNullable<SandboxRuntimeOptions['driver']> {
  if (way === 'product') return 'docker'
  if (way === 'process') return 'process'
  return (install) => cliDriver({ ...parts, installId: install.installId, user: install.user })
}

/** A model service that answers at once. */
async function standInModel(): Promise<{ url: string } & AsyncDisposable> {
  const message = { role: 'assistant', content: 'hello' }
  const body = JSON.stringify({ choices: [{ index: 0, finish_reason: 'stop', message }] })
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.setHeader('content-type', 'application/json').end(body))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

function rows(samples: ReadonlyMap<Way, readonly Sample[]>): readonly BenchRow[] {
  const row = (id: string, what: string, pick: (sample: Sample) => number): BenchRow[] => {
    const of = (way: Way) => (samples.get(way) ?? []).map(pick)
    const peer = median(of('cli'))
    const one = (suffix: string, way: Way, goal?: string): BenchRow => ({
      id: `${id}${suffix}`,
      what: `${what}, ${{ product: 'this product', cli: 'docker run', process: 'a bare process' }[way]}`,
      unit: 'ms',
      value: median(of(way)),
      p99: quantile(of(way), 0.99),
      peer,
      ratio: median(of(way)) / peer,
      ...(goal === undefined ? {} : { goal }),
    })
    return [one('', 'product', '<= 0.6'), one('.cli', 'cli'), one('.process', 'process')]
  }
  return [
    ...row('turn.cold.handover', 'message to first model call', (sample) => sample.handoverMs),
    ...row('turn.cold.reply', 'message to reply at the host', (sample) => sample.replyMs),
  ]
}
