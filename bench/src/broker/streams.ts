import { type BenchRow, judged, median, quantile } from '../report.ts'
import { Caller, type Door } from './load.ts'

/** What streams were like: the time to the first event of each, and of each the delays of its events. */
interface Streams {
  readonly first: number[]
  readonly delays: number[][]
}

/** Streams of so many events to each in turn, so many times. */
export async function streamed<Name extends string>(
  doors: Readonly<Record<Name, Door>>,
  {
    body,
    events,
    rounds,
    settle = async () => {},
  }: {
    readonly body: Uint8Array
    readonly events: number
    readonly rounds: number
    /** Called before each round. */
    readonly settle?: () => Promise<void>
  },
): Promise<Readonly<Record<Name, Streams>>> {
  const names = Object.keys(doors) as Name[]
  const callers = names.map((name) => [name, new Caller(doors[name])] as const)
  const found = {} as Record<Name, Streams>
  for (const name of names) found[name] = { first: [], delays: [] }
  for (let round = 0; round < rounds; round += 1) {
    await settle()
    for (const [name, caller] of callers) {
      const { firstMs, delaysMs } = await caller.stream(body)
      if (delaysMs.length !== events) {
        throw new TypeError(`bench: ${name} passed ${delaysMs.length} events of ${events}`)
      }
      found[name].first.push(firstMs)
      found[name].delays.push(delaysMs)
    }
  }
  await Promise.all(callers.map(([, caller]) => caller.close()))
  return found
}

/** How long an event is held, above a direct stream and above the bare forwarder's. */
export function eventRows(
  id: string,
  found: Readonly<Record<'direct' | 'bare' | 'ours', Streams>>,
): BenchRow[] {
  // Of the streams' own quantiles the median: a moment in which the machine had something else to do spoils one.
  const delay = (name: keyof typeof found, q: number) =>
    median(found[name].delays.map((delays) => quantile(delays, q)))
  return [
    judged({
      id: `${id}.event.added`,
      what: `p99 of the delay of an event, median of ${found.ours.delays.length} streams, above that of the bare forwarder (peer: its p99 above direct)`,
      unit: 'ms',
      value: delay('ours', 0.99) - delay('bare', 0.99),
      peer: delay('bare', 0.99) - delay('direct', 0.99),
      goal: '<= 0.5',
    }),
    {
      id: `${id}.event.median`,
      what: 'median delay of an event; peer: bare node:http + undici',
      unit: 'ms',
      value: delay('ours', 0.5),
      p99: delay('ours', 0.99),
      peer: delay('bare', 0.5),
      ratio: delay('ours', 0.5) / delay('bare', 0.5),
    },
  ]
}
