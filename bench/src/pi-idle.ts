import { setTimeout as sleep } from 'node:timers/promises'
import type { Usage } from './part.ts'
import { startIdleParts } from './pi/parts.ts'
import type { BenchRow } from './report.ts'

const CHANNELS = 200
/** Two polls of each worker, which are held for 45 s. */
const SECONDS = Number(process.env.BENCH_IDLE_SECONDS ?? 90)
const KIB = 1024

interface Workers {
  /** How many have not been told to go. */
  readonly working: number
  /** Polls that ended without a turn. */
  readonly polls: number
}

type Memory = Usage & { readonly heapBytes: number }

/**
 * Channels whose workers wait for their next turn after a first one. The workers are in another process; memory is
 * what is left after garbage collection, above that of the same process after a few channels that came before.
 */
export async function idle(): Promise<BenchRow[]> {
  await using parts = await startIdleParts()
  const { host, workers } = parts
  const play = async (channels: number) => {
    const { sockets } = await host.ask<{ sockets: string[] }>({ begin: channels })
    await workers.ask({ work: sockets })
    await host.ask({ finish: true })
  }
  await play(20)
  await host.ask({ stop: true })
  const before = await host.ask<Memory>({ memory: true })
  await play(CHANNELS)
  // Until all of them ask again.
  await sleep(2000)
  const asked = await workers.ask<Workers>({})
  const start = await host.ask<Memory>({ memory: true })
  const startMs = performance.now()
  await sleep(SECONDS * 1000)
  const end = await host.ask<Usage>({ usage: true })
  const seconds = (performance.now() - startMs) / 1000
  const { polls, working } = await workers.ask<Workers>({})
  if (working !== CHANNELS) throw new TypeError(`bench: ${working} workers of ${CHANNELS} are left`)
  const after = await host.ask<Memory>({ memory: true })
  return [
    {
      id: 'pi.idle.rss',
      what: `memory of the host for each of ${CHANNELS} channels that wait, ${Math.round(seconds)} s after their first turn`,
      unit: 'MiB',
      value: (after.rssBytes - before.rssBytes) / CHANNELS / KIB / KIB,
      goal: '<= 1',
    },
    {
      id: 'pi.idle.heap',
      what: 'of it, objects of JavaScript',
      unit: 'KiB',
      value: (after.heapBytes - before.heapBytes) / CHANNELS / KIB,
    },
    {
      id: 'pi.idle.cpu',
      what: `of a core, for ${CHANNELS} polls that are held; ${polls - asked.polls} ended and were asked again`,
      unit: '%',
      value: (end.cpuUs - start.cpuUs) / 10_000 / seconds,
      goal: '< 1',
    },
  ]
}
