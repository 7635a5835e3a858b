import { Caller } from './broker/load.ts'
import { type StreamParts, startStreamParts } from './pi/parts.ts'
import { type BenchRow, median, quantile } from './report.ts'
import { quiet } from './turn-start-lane.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 120)
const WARM_UP = 200
const LONG_ROUNDS = 15
const EVENTS = 500

/** Streams of a few events for the first token, and of many for what each event is held; one after the other. */
export async function streams(): Promise<BenchRow[]> {
  await using parts = await startStreamParts()
  const { doors } = parts
  await measured(doors, 3, WARM_UP)
  const short = await measured(doors, 3, ROUNDS, quiet)
  const long = await measured(doors, EVENTS, LONG_ROUNDS, quiet)
  const first = (name: Name, q: number) => quantile(short[name].first, q) - quantile(short.direct.first, q)
  // Of the streams' own quantiles the median: a moment in which the machine had something else to do spoils one.
  const delay = (name: Name, q: number) => median(long[name].delays.map((delays) => quantile(delays, q)))
  return [
    {
      id: 'pi.first.added',
      what: 'time to the first token, above a direct call; peer: bare node:http + undici',
      unit: 'ms',
      value: first('ours', 0.5),
      p99: first('ours', 0.99),
      peer: first('bare', 0.5),
      ratio: first('ours', 0.5) / first('bare', 0.5),
    },
    {
      id: 'pi.first',
      what: 'time to the first token; peer: a direct call',
      unit: 'ms',
      value: median(short.ours.first),
      p99: quantile(short.ours.first, 0.99),
      peer: median(short.direct.first),
    },
    {
      id: 'pi.event.added',
      what: `p99 of the delay of an event, median of ${LONG_ROUNDS} streams, above that of the bare forwarder (peer: its p99 above direct)`,
      unit: 'ms',
      value: delay('ours', 0.99) - delay('bare', 0.99),
      peer: delay('bare', 0.99) - delay('direct', 0.99),
      goal: '<= 0.5',
    },
    {
      id: 'pi.event.median',
      what: 'median delay of an event; peer: bare node:http + undici',
      unit: 'ms',
      value: delay('ours', 0.5),
      p99: delay('ours', 0.99),
      peer: delay('bare', 0.5),
      ratio: delay('ours', 0.5) / delay('bare', 0.5),
    },
  ]
}

type Name = keyof StreamParts['doors']

interface Found {
  readonly first: number[]
  /** Of each stream. */
  readonly delays: number[][]
}

async function measured(
  doors: StreamParts['doors'],
  events: number,
  rounds: number,
  settle = async () => {},
): Promise<Record<Name, Found>> {
  const empty = (): Found => ({ first: [], delays: [] })
  const found: Record<Name, Found> = { direct: empty(), bare: empty(), ours: empty() }
  const names = Object.keys(found) as Name[]
  const callers = names.map((name) => [name, new Caller(doors[name])] as const)
  const body = request(events)
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

/** A conversation of some 16 KiB, as an agent sends it. */
function request(maxTokens: number): Uint8Array {
  const line = 'The function reads the file and returns its lines; “é” is kept as it is.\n'
  const messages = Array.from({ length: 32 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: [{ type: 'text', text: line.repeat(6) }],
  }))
  const system = [{ type: 'text', text: line.repeat(20), cache_control: { type: 'ephemeral' } }]
  const last = { role: 'user', content: 'Go on.' }
  return Buffer.from(
    JSON.stringify({
      model: 'claude-guest',
      max_tokens: maxTokens,
      stream: true,
      system,
      messages: [...messages, last],
    }),
  )
}
