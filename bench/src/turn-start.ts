import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildImage, type Driver, engineSocketPath } from '@sandbox/docker-worker'
import { cliDriver } from './cli-driver.ts'
import { type BenchRow, median, quantile } from './report.ts'
import { account, Lane, type LaneParts, quiet, type Sample, standInModel } from './turn-start-lane.ts'
import { hasRunc, runcDriver } from './turn-start-runc.ts'
import { warmRows } from './turn-start-warm.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 20)

const NAMES = {
  product: 'this product, no worker waits',
  cli: 'docker run',
  process: 'floor: a bare process',
  runc: 'floor: runc run',
} as const

type Way = keyof typeof NAMES

/**
 * Cold turns of the product, of `docker run` and of the floors, one after the other in every round; then turns for
 * which a worker waits.
 */
export async function run(): Promise<readonly BenchRow[]> {
  const engineSocket = process.env.SANDBOX_DOCKER_SOCKET ?? engineSocketPath(process.env)
  const image = await buildImage({ engineSocket, onProgress: (line) => console.error(line) })
  await using model = await standInModel()
  const state = mkdtempSync(join(tmpdir(), 'sbx-bench-'))
  chmodSync(state, 0o711)
  const parts: LaneParts = { engineSocket, image: image.tag, modelUrl: model.url }
  try {
    const cold = await coldRows(state, parts)
    return [...cold, ...(await warmRows(state, parts, ROUNDS * 5))]
  } finally {
    rmSync(state, { recursive: true, force: true })
  }
}

async function coldRows(state: string, parts: LaneParts): Promise<BenchRow[]> {
  const lanes: { way: Way; lane: Lane; samples: Sample[] }[] = []
  const open = (way: Way, driver: 'docker' | 'process' | (() => Driver)) =>
    lanes.push({ way, lane: new Lane(way, state, parts, { driver, warm: false }), samples: [] })
  try {
    open('product', 'docker')
    open('cli', () => cliDriver({ ...parts, installId: 'bench', user: account }))
    open('process', 'process')
    if (await hasRunc()) {
      const directory = join(state, 'runc-files')
      mkdirSync(directory)
      const driver = await runcDriver({ ...parts, user: account, directory })
      open('runc', () => driver)
    }
    for (let round = 0; round <= ROUNDS; round++) {
      // The first round is warm-up.
      for (const { lane, samples } of lanes) {
        await quiet()
        const sample = await lane.turn()
        if (round > 0) samples.push(sample)
      }
      process.stderr.write(`\rround ${round} of ${ROUNDS}${round === ROUNDS ? '\n' : ''}`)
    }
  } finally {
    for (const { lane } of lanes) await lane.runtime.dispose()
  }
  return rows(new Map(lanes.map(({ way, samples }) => [way, samples])))
}

function rows(samples: ReadonlyMap<Way, readonly Sample[]>): BenchRow[] {
  const row = (id: string, what: string, goal: string, pick: (sample: Sample) => number): BenchRow[] => {
    const of = (way: Way) => (samples.get(way) ?? []).map(pick)
    const peer = median(of('cli'))
    return [...samples.keys()].map((way) => ({
      id: way === 'product' ? id : `${id}.${way}`,
      what: `${what}, ${NAMES[way]}`,
      unit: 'ms',
      value: median(of(way)),
      p99: quantile(of(way), 0.99),
      peer,
      ratio: median(of(way)) / peer,
      ...(way === 'product' ? { goal } : {}),
    }))
  }
  return [
    ...row('turn.cold.handover', 'message to first model call', '<= 0.6', ({ handoverMs }) => handoverMs),
    ...row('turn.cold.reply', 'message to reply at the host', '<= 0.55', ({ replyMs }) => replyMs),
  ]
}
