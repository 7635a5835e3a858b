import { parseArgs } from 'node:util'
import { Random } from './random.ts'
import type { FuzzTarget } from './target.ts'
import { targets } from './targets/index.ts'

const USAGE = `usage: fuzz/main.ts [TARGET...] [--seconds N] [--seed S] [--cases N]
  without TARGET: all, one after another; --seconds: for each, default 20
  --seed and --cases: as a failure prints them, to run that case again
${targets.map(({ name, about }) => `  ${name.padEnd(10)} ${about}`).join('\n')}`

/** Cases until the event loop gets a turn. */
const BATCH = 200

interface Bounds {
  readonly seed: number
  readonly seconds: number
  readonly cases: number
}

/** Runs cases until time or number is up; true when all held. */
async function fuzz(target: FuzzTarget, { seed, seconds, cases }: Bounds): Promise<boolean> {
  const untilMs = performance.now() + seconds * 1000
  let done = 0
  try {
    while (done < cases && performance.now() < untilMs) {
      for (let batch = 0; batch < BATCH && done < cases; batch += 1, done += 1) {
        const held = target.run(new Random(seed + done))
        if (held instanceof Promise) await held
        if (held instanceof Promise && performance.now() > untilMs) break
      }
      await new Promise((next) => setImmediate(next))
    }
    console.log(`${target.name}: ${done} cases from seed ${seed}: all held`)
    return true
  } catch (error) {
    console.error(`${target.name}: case ${done} FAILED\n${error instanceof Error ? error.stack : error}`)
    console.error(
      `again: node --conditions=@sandbox/source packages/broker/fuzz/main.ts ${target.name} --seed ${(seed + done) >>> 0} --cases 1`,
    )
    return false
  } finally {
    await target.stop?.()
  }
}

function whole(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text)
  if (Number.isSafeInteger(value) && value >= 0) return value
  console.error(USAGE)
  process.exit(2)
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string' }, seed: { type: 'string' }, cases: { type: 'string' } },
})
const chosen = positionals.map((name) => targets.find((target) => target.name === name))
const bounds: Bounds = {
  seed: whole(values.seed, Math.floor(Math.random() * 2 ** 31)),
  seconds: whole(values.seconds, 20),
  cases: whole(values.cases, Number.MAX_SAFE_INTEGER),
}
let failed = 0
for (const target of chosen.length === 0 ? targets : chosen) {
  if (target === undefined) {
    console.error(USAGE)
    process.exit(2)
  }
  if (!(await fuzz(target, bounds))) failed += 1
}
process.exitCode = failed === 0 ? 0 : 1
