import { eventRows, streamed } from './broker/streams.ts'
import { startStreamParts } from './pi/parts.ts'
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
  await streamed(doors, { ...request(3), rounds: WARM_UP })
  const short = await streamed(doors, { ...request(3), rounds: ROUNDS, settle: quiet })
  const long = await streamed(doors, { ...request(EVENTS), rounds: LONG_ROUNDS, settle: quiet })
  const first = (name: keyof typeof doors, q: number) =>
    quantile(short[name].first, q) - quantile(short.direct.first, q)
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
    ...eventRows('pi', long),
  ]
}

/** A conversation of some 16 KiB, as an agent sends it. */
function request(events: number): { body: Uint8Array; events: number } {
  const line = 'The function reads the file and returns its lines; “é” is kept as it is.\n'
  const messages = Array.from({ length: 32 }, (_, at) => ({
    role: at % 2 === 0 ? 'user' : 'assistant',
    content: [{ type: 'text', text: line.repeat(6) }],
  }))
  const system = [{ type: 'text', text: line.repeat(20), cache_control: { type: 'ephemeral' } }]
  const last = { role: 'user', content: 'Go on.' }
  const body = JSON.stringify({
    model: 'claude-guest',
    max_tokens: events,
    stream: true,
    system,
    messages: [...messages, last],
  })
  return { body: Buffer.from(body), events }
}
