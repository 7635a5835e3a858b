import { parseArgs } from 'node:util'
import { type BenchRow, report, table } from './report.ts'

/** A benchmark: what it measures, and how to get its rows. */
interface Bench {
  readonly about: string
  load(): Promise<{ run(): Promise<readonly BenchRow[]> }>
}

const benches: Record<string, Bench> = {
  'turn-start': {
    about:
      'from a message to the first model call and to the reply: this product, docker run, a bare process',
    load: () => import('./turn-start.ts'),
  },
  'pi-start': {
    about: 'from the start of a Pi worker to its first poll: from its image, without code cache, unbundled',
    load: () => import('./pi-start.ts'),
  },
  pi: {
    about: 'the Pi broker against a direct call and a bare forwarder: streams; 200 channels that wait',
    load: () => import('./pi.ts'),
  },
  'credential-scope': {
    about: 'the matcher, the key file and the scopes: one core, in this process',
    load: () => import('./credential-scope.ts'),
  },
  json: {
    about:
      'request bodies held against a table: time against JSON.parse and JSON.stringify, event loop blocks',
    load: () => import('./json.ts'),
  },
  broker: {
    about: 'the broker against a direct call, nginx, a bare forwarder and Portkey: calls, streams, memory',
    load: () => import('./broker.ts'),
  },
}

const usage = () =>
  [
    'usage: pnpm bench NAME [--json FILE]',
    ...Object.entries(benches).map(([name, b]) => `  ${name}  ${b.about}`),
  ].join('\n')

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' }, help: { type: 'boolean' } },
})
const name = positionals[0]
const bench = name === undefined ? undefined : benches[name]
if (values.help === true || name === undefined || bench === undefined) {
  console.error(usage())
  process.exit(values.help === true ? 0 : 2)
}
const { run } = await bench.load()
const done = report(name, await run(), values.json === undefined ? {} : { file: values.json })
console.log(table(done.rows))
process.exitCode = done.rows.every((row) => row.holds !== false) ? 0 : 1
