import { readFileSync, writeFileSync } from 'node:fs'
import { bodyOf, Caller, type Door } from './broker/load.ts'
import { type Peers, startPeers } from './broker/peers.ts'
import { throughput } from './broker/rates.ts'
import { eventRows, streamed } from './broker/streams.ts'
import { type BenchRow, judged, median, quantile } from './report.ts'
import { quiet } from './turn-start-lane.ts'

const KIB = 1024
const MIB = KIB * KIB
const BUDGET_BYTES = 256 * MIB

/** The sealed broker with every check on, against other ways to the same local model service. */
export async function run(): Promise<readonly BenchRow[]> {
  return [...(await streams()), ...(await calls())]
}

async function calls(): Promise<BenchRow[]> {
  await using peers = await startPeers()
  return [
    ...(await added(peers, '2k', 2 * KIB, 300)),
    ...(await added(peers, '16k', 16 * KIB, 300, '<= 1.5')),
    ...(await added(peers, '400k', 400 * KIB, 150, '<= 2')),
    ...(await throughput(peers)),
    ...(await bodies(peers)),
  ]
}

type Named = readonly (readonly [name: string, door: Door])[]

async function doorsOf(peers: Peers): Promise<Named> {
  const [ours] = await peers.doors(1)
  const bun = await peers.bun?.doors(1)
  return [
    ['direct', peers.direct],
    ['bare', peers.bare],
    ['ours', ours as Door],
    ...(peers.bun === undefined
      ? []
      : ([
          ['bare on Bun', peers.bun.bare],
          ['ours on Bun', bun?.[0] as Door],
        ] as const)),
    ...(peers.nginx === undefined ? [] : [['nginx', peers.nginx] as const]),
  ]
}

/** One call after another, to each in turn: a busy machine slows all of them. */
async function added(
  peers: Peers,
  id: string,
  bytes: number,
  rounds: number,
  goal?: string,
): Promise<BenchRow[]> {
  const body = bodyOf(bytes)
  const callers = (await doorsOf(peers)).map(([name, door]) => ({
    name,
    caller: new Caller(door),
    ms: [] as number[],
  }))
  for (let round = -rounds; round < rounds; round += 1) {
    for (const { caller, ms } of callers) {
      const took = await caller.call(body)
      if (round >= 0) ms.push(took)
    }
  }
  await Promise.all(callers.map(({ caller }) => caller.close()))
  const of = (name: string) => callers.find((one) => one.name === name)?.ms ?? []
  const above = (name: string, q: number) => quantile(of(name), q) - quantile(of('direct'), q)
  const size = `${Math.round(body.length / KIB)} KiB`
  const row = (suffix: string, on: string) =>
    judged({
      id: `broker.${id}.added${suffix}`,
      what: `added to a direct call of ${size}, 1 client; peer: bare node:http + undici${on}`,
      unit: 'ms',
      value: above(`ours${on}`, 0.5),
      p99: above(`ours${on}`, 0.99),
      peer: above(`bare${on}`, 0.5),
      ratio: above(`ours${on}`, 0.5) / above(`bare${on}`, 0.5),
      ...(goal === undefined ? {} : { goal }),
    })
  return [
    row('', ''),
    ...(of('ours on Bun').length === 0 ? [] : [row('.bun', ' on Bun')]),
    ...(of('nginx').length === 0
      ? []
      : [
          judged({
            id: id === '16k' ? 'broker.latency' : `broker.${id}.latency`,
            what: `a whole call of ${size}, 1 client; peer: nginx proxy_pass`,
            unit: 'ms',
            value: median(of('ours')),
            p99: quantile(of('ours'), 0.99),
            peer: median(of('nginx')),
            ratio: median(of('ours')) / median(of('nginx')),
            ...(id === '16k' ? { goal: '<= 3' } : {}),
          }),
        ]),
  ]
}

/**
 * Streams of 500 events, two milliseconds apart, to each in turn. Of processes that did nothing else: what other rows
 * leave in their memory gives the system work of milliseconds, and that would be the p99 of both.
 */
async function streams(): Promise<BenchRow[]> {
  await using peers = await startPeers()
  const [ours] = await peers.doors(1)
  const doors = { direct: peers.direct, bare: peers.bare, ours: ours as Door }
  const body = bodyOf(2 * KIB, true)
  // Until the compilers are done, what they do to the cores is most of a p99.
  await streamed(doors, { body, events: 500, rounds: 8 })
  const found = await streamed(doors, { body, events: 500, rounds: 20, settle: quiet })
  const first = (name: keyof typeof doors) => median(found[name].first)
  return [
    ...eventRows('stream', found),
    {
      id: 'stream.first.added',
      what: 'time to the first event, above a direct call; peer: bare node:http + undici',
      unit: 'ms',
      value: first('ours') - first('direct'),
      peer: first('bare') - first('direct'),
      ratio: (first('ours') - first('direct')) / (first('bare') - first('direct')),
    },
  ]
}

/** 50 clients send 30 MB at once: the most memory that the process takes above what it had before. */
async function bodies(peers: Peers): Promise<BenchRow[]> {
  const body = bodyOf(30_000_000)
  const doors = await peers.doors(50)
  const callers = doors.map((door) => new Caller(door))
  const before = rss(peers.ours.pid, 'VmRSS')
  writeFileSync(`/proc/${peers.ours.pid}/clear_refs`, '5')
  const ms = await Promise.all(callers.map((caller) => caller.call(body)))
  const peak = rss(peers.ours.pid, 'VmHWM') - before
  await Promise.all(callers.map((caller) => caller.close()))
  return [
    judged({
      id: 'memory.bodies.peak',
      what: `50 clients send ${Math.round(body.length / 1e6)} MB at once, all answered within ${Math.round(Math.max(...ms) / 1000)} s; peer: the budget`,
      unit: 'MiB',
      value: peak / MIB,
      peer: BUDGET_BYTES / MIB,
      ratio: peak / BUDGET_BYTES,
      goal: '<= 1',
    }),
    {
      id: 'broker.rss',
      what: 'memory of the process with some 50 bound brokers, before that',
      unit: 'MiB',
      value: before / MIB,
    },
  ]
}

function rss(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+) kB`).exec(status)?.[1] ?? Number.NaN) * KIB
}
