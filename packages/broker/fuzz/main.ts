import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import { Random } from './random.ts'
import type { FuzzTarget } from './target.ts'
import { targets } from './targets/index.ts'

const USAGE = `usage: fuzz/main.ts [TARGET...] [--seconds N] [--workers N] [--seed S] [--cases N]
  without TARGET: all, one after another; --seconds: for each, default 20
  --workers: so many at a time, each in a process of its own, default 1
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

/** Runs a target in a process of its own, and prints what it said when it has ended. */
function apart(name: string, { seed, seconds }: Bounds): Promise<boolean> {
  const [main = ''] = process.argv.slice(1)
  const args = [...process.execArgv, main, name, '--seconds', `${seconds}`, '--seed', `${seed}`]
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const output of [child.stdout, child.stderr]) output.on('data', (chunk) => (said += chunk))
    child.on('error', (error) => (said += `${name}: ${error.message}\n`))
    child.on('close', (code) => {
      process.stdout.write(said)
      resolve(code === 0)
    })
  })
}

/** So many at a time, in order; how many did not hold. */
async function inProcesses(names: readonly string[], workers: number, bounds: Bounds): Promise<number> {
  const left = [...names]
  let failed = 0
  const work = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      if (!(await apart(name, bounds))) failed += 1
    }
  }
  await Promise.all(Array.from({ length: workers }, work))
  return failed
}

async function oneAfterAnother(chosen: readonly FuzzTarget[], bounds: Bounds): Promise<number> {
  let failed = 0
  for (const target of chosen) if (!(await fuzz(target, bounds))) failed += 1
  return failed
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string' },
    workers: { type: 'string' },
    seed: { type: 'string' },
    cases: { type: 'string' },
  },
})
const chosen = positionals.flatMap((name) => targets.find((target) => target.name === name) ?? [])
if (chosen.length < positionals.length) {
  console.error(USAGE)
  process.exit(2)
}
const bounds: Bounds = {
  seed: whole(values.seed, Math.floor(Math.random() * 2 ** 31)),
  seconds: whole(values.seconds, 20),
  cases: whole(values.cases, Number.MAX_SAFE_INTEGER),
}
const workers = whole(values.workers, 1)
const run = chosen.length === 0 ? targets : chosen
const failed =
  workers > 1
    ? await inProcesses(
        run.map(({ name }) => name),
        workers,
        bounds,
      )
    : await oneAfterAnother(run, bounds)
process.exitCode = failed === 0 ? 0 : 1
