import type { Part, Usage } from '../part.ts'
import { type BenchRow, judged, median } from '../report.ts'
import { bodyOf, Caller, type Door } from './load.ts'
import type { Peers } from './peers.ts'

const KIB = 1024
/** Rates are taken so often, in turn; the median counts. */
const RATE_ROUNDS = 3

/** Calls per second, so many clients at once, and the processor's time for each; ours: each client has a broker of its own. */
export async function throughput(peers: Peers): Promise<BenchRow[]> {
  const small = bodyOf(2 * KIB)
  const ours = async (pair: Pick<Peers, 'ours' | 'doors'>, body: Uint8Array, { clients, calls }: Load) => {
    const found = await rate(await pair.doors(clients), body, { calls, part: pair.ours })
    await pair.ours.ask({ close: true })
    return found
  }
  const theirs =
    ({ part, ...door }: Door & { readonly part?: Part }) =>
    (body: Uint8Array, { clients, calls }: Load) =>
      rate(
        Array.from({ length: clients }, () => door),
        body,
        { calls, part },
      )
  const us = (body: Uint8Array, load: Load) => ours(peers, body, load)
  const rows: BenchRow[] = []
  for (const clients of [16, 64]) {
    const load = { clients, calls: 400 }
    const [our, bare] = await rates([us, theirs(peers.bare)], small, load)
    const words = `calls of 2 KiB, ${clients} clients; peer: bare node:http + undici`
    rows.push(
      versus({ id: `broker.rps.${clients}`, what: words, unit: 'per s' }, our.perSecond, bare.perSecond),
    )
    if (clients !== 16) continue
    const cpu = 'CPU time of the broker per call of 2 KiB, 16 clients; peer: bare node:http + undici'
    rows.push(versus({ id: 'broker.cpu', what: cpu, unit: 'us' }, our.cpuUs, bare.cpuUs))
  }
  if (peers.portkey !== undefined) rows.push(...(await besidePortkey(us, theirs(peers.portkey))))
  const { bun } = peers
  if (bun === undefined) return rows
  const onBun = (body: Uint8Array, load: Load) => ours(bun, body, load)
  const [our, bare] = await rates([onBun, theirs(bun.bare)], small, { clients: 16, calls: 400 })
  const words = 'calls of 2 KiB, 16 clients; peer: bare node:http + undici on Bun'
  return [
    ...rows,
    versus({ id: 'broker.rps.16.bun', what: words, unit: 'per s' }, our.perSecond, bare.perSecond),
  ]
}

/** The model service and the clients take their share of the same cores: it is the same for both. */
async function besidePortkey(us: Doer, portkey: Doer): Promise<BenchRow[]> {
  const row = (id: string, size: string) => ({
    id,
    what: `calls of ${size}, 16 clients; peer: @portkey-ai/gateway`,
    unit: 'per s',
    goal: '>= 5',
  })
  const light = await rates([us, portkey], bodyOf(2 * KIB), { clients: 16, calls: 300 })
  const usual = await rates([us, portkey], bodyOf(16 * KIB), { clients: 16, calls: 150 })
  const heavy = await rates([us, portkey], bodyOf(400 * KIB), { clients: 16, calls: 20 })
  return [
    versus(row('broker.rps', '2 KiB'), light[0].perSecond, light[1].perSecond),
    versus(row('broker.16k.rps', '16 KiB'), usual[0].perSecond, usual[1].perSecond),
    versus(row('broker.400k.rps', '400 KiB'), heavy[0].perSecond, heavy[1].perSecond),
  ]
}

interface Load {
  readonly clients: number
  /** Of each client. */
  readonly calls: number
}

interface Rate {
  readonly perSecond: number
  readonly cpuUs: number
}

function versus(row: Omit<BenchRow, 'value'>, value: number, peer: number): BenchRow {
  return judged({ ...row, value, peer, ratio: value / peer })
}

/** Each of two in turn: once to get warm, then the rounds. */
async function rates(
  doers: readonly [Doer, Doer],
  body: Uint8Array,
  load: Load,
): Promise<readonly [Rate, Rate]> {
  const found: [Rate[], Rate[]] = [[], []]
  for (let round = -1; round < RATE_ROUNDS; round += 1) {
    for (const [index, doer] of doers.entries()) {
      const one = await doer(body, load)
      if (round >= 0) found[index]?.push(one)
    }
  }
  const middle = (ones: readonly Rate[]) => ({
    perSecond: median(ones.map((one) => one.perSecond)),
    cpuUs: median(ones.map((one) => one.cpuUs)),
  })
  return [middle(found[0]), middle(found[1])]
}

type Doer = (body: Uint8Array, load: Load) => Promise<Rate>

async function rate(
  doors: readonly Door[],
  body: Uint8Array,
  { part, calls }: { readonly part: Part | undefined; readonly calls: number },
): Promise<Rate> {
  const callers = doors.map((door) => new Caller(door))
  await Promise.all(callers.map((caller) => caller.call(body)))
  const before = await part?.ask<Usage>({})
  const startMs = performance.now()
  await Promise.all(
    callers.map(async (caller) => {
      for (let done = 0; done < calls; done += 1) await caller.call(body)
    }),
  )
  const seconds = (performance.now() - startMs) / 1000
  const after = await part?.ask<Usage>({})
  await Promise.all(callers.map((caller) => caller.close()))
  const total = calls * doors.length
  return {
    perSecond: total / seconds,
    cpuUs: before === undefined || after === undefined ? 0 : (after.cpuUs - before.cpuUs) / total,
  }
}
