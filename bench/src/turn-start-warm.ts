import { request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { createDockerDriver } from '@sandbox/docker-worker'
import type { ChannelKey } from '@sandbox/roundtable-plugin'
import { type BenchRow, median, quantile } from './report.ts'
import { Lane, type LaneParts, quiet, type Sample } from './turn-start-lane.ts'

/** Turns at once in `turn.warm.parallel10`. */
const AT_ONCE = 10
/** Times that it is repeated. */
const BURSTS = 5

/** Turns that are handed to waiting workers: one at a time, then ten at once; and what one worker costs that waits. */
export async function warmRows(
  state: string,
  parts: LaneParts,
  rounds: number,
): Promise<readonly BenchRow[]> {
  const ids: string[] = []
  const lane = new Lane('warm', state, parts, {
    warm: { workers: AT_ONCE + 2, memoryBytes: 2 ** 30 },
    driver: ({ installId, user }) => {
      const driver = createDockerDriver({ ...parts, installId, user })
      const start = driver.start.bind(driver)
      driver.start = async (spec, signal) => {
        const worker = await start(spec, signal)
        ids.push(worker.id)
        return worker
      }
      return driver
    },
  })
  try {
    const single = await oneAtATime(lane, rounds)
    const bursts = await allAtOnce(lane)
    const memory: number[] = []
    for (const id of ids) {
      const mib = await memoryMiB(parts.engineSocket, id)
      if (mib !== undefined) memory.push(mib)
    }
    return rows(single, bursts, memory)
  } finally {
    await lane.runtime.dispose()
  }
}

async function oneAtATime(lane: Lane, rounds: number): Promise<Sample[]> {
  const samples: Sample[] = []
  lane.runtime.warm('bench:one')
  for (let round = 0; round <= rounds; round += 1) {
    await waits(lane, ['bench:one'])
    const sample = await lane.turn()
    if (!sample.warm) throw new TypeError('bench: a turn that should have been warm was not')
    // The first one is warm-up.
    if (round > 0) samples.push(sample)
    if (round % 10 === 0)
      process.stderr.write(`\rwarm turn ${round} of ${rounds}${round === rounds ? '\n' : ''}`)
  }
  return samples
}

/** The time from the first message to the last reply, of each burst. */
async function allAtOnce(lane: Lane): Promise<number[]> {
  const channels = Array.from({ length: AT_ONCE }, (_, index): ChannelKey => `bench:many-${index}`)
  const bursts: number[] = []
  for (const channel of channels) lane.runtime.warm(channel)
  for (let burst = 0; burst <= BURSTS; burst += 1) {
    await waits(lane, channels)
    const samples = await Promise.all(channels.map((channel) => lane.turn(channel)))
    if (samples.some(({ warm }) => !warm)) throw new TypeError('bench: a turn of a burst was not warm')
    if (burst > 0) bursts.push(Math.max(...samples.map(({ replyMs }) => replyMs)))
  }
  await waits(lane, channels)
  return bursts
}

async function waits(lane: Lane, channels: readonly ChannelKey[]): Promise<void> {
  while (!channels.every((channel) => lane.runtime.warmed().includes(channel))) await pause(5)
  await quiet()
}

/** What the container's cgroup counts, as the engine tells it; `undefined` for one that is gone. */
async function memoryMiB(socketPath: string, id: string): Promise<number | undefined> {
  const text = await new Promise<string>((resolve, reject) => {
    const path = `/containers/${id}/stats?stream=false&one-shot=true`
    request({ socketPath, path, headers: { host: 'engine' }, agent: false }, async (answer) => {
      let body = ''
      for await (const chunk of answer) body += chunk
      resolve(answer.statusCode === 200 ? body : '{}')
    })
      .on('error', reject)
      .end()
  })
  const bytes: unknown = JSON.parse(text).memory_stats?.usage
  return typeof bytes === 'number' ? bytes / 2 ** 20 : undefined
}

function rows(single: readonly Sample[], bursts: readonly number[], memory: readonly number[]): BenchRow[] {
  const handover = single.map(({ handoverMs }) => handoverMs)
  const reply = single.map(({ replyMs }) => replyMs)
  const p99 = quantile(handover, 0.99)
  return [
    {
      id: 'turn.warm.handover',
      what: 'message to first model call, a worker was waiting',
      unit: 'ms',
      value: median(handover),
      p99,
      goal: '<= 15',
    },
    {
      id: 'turn.warm.handover.p99',
      what: `the same, 99th percentile of ${handover.length}`,
      unit: 'ms',
      value: p99,
      goal: '<= 60',
    },
    {
      id: 'turn.warm.reply',
      what: 'message to reply at the host, a worker was waiting',
      unit: 'ms',
      value: median(reply),
      p99: quantile(reply, 0.99),
    },
    {
      id: 'turn.warm.parallel10',
      what: 'ten messages at once to the last reply; the peer is one message alone',
      unit: 'ms',
      value: median(bursts),
      peer: median(reply),
      ratio: median(bursts) / median(reply),
      goal: '<= 12',
    },
    {
      id: 'worker.idle.mem',
      what: `memory of a worker that waits, by its cgroup, median of ${memory.length}`,
      unit: 'MiB',
      value: median(memory),
      p99: quantile(memory, 0.99),
      goal: '<= 12',
    },
  ]
}
