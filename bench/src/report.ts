import { writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'

/** One measured figure. `value` is a median; `ratio` is ours divided by the peer's in the same run. */
export interface BenchRow {
  readonly id: string
  readonly what: string
  readonly unit: string
  readonly value: number
  readonly p99?: number
  readonly peer?: number
  readonly ratio?: number
  /** Such as `<= 0.6`: on `ratio` where there is one, else on `value`. */
  readonly goal?: string
  readonly holds?: boolean
}

/** The document that `pnpm bench NAME --json FILE` writes. */
export interface BenchReport {
  readonly name: string
  readonly date: string
  readonly machine: { cpus: number; memGiB: number; node: string; engine?: string }
  readonly rows: readonly BenchRow[]
}

/** The q-th quantile (0 to 1) of `values` by the nearest rank. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))] ?? Number.NaN
}

/** The median of `values`. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** Says whether `value` meets a goal such as `<= 0.6` or `>= 3`. */
function meets(goal: string, value: number): boolean {
  const match = /^(<=|>=|<|>) ?([0-9.]+)$/.exec(goal)
  if (match === null) throw new TypeError(`bench: a goal is an operator and a number, not "${goal}"`)
  const bound = Number(match[2])
  if (match[1] === '<=') return value <= bound
  if (match[1] === '>=') return value >= bound
  return match[1] === '<' ? value < bound : value > bound
}

/** Adds `holds` to a row that has a goal. */
export function judged(row: BenchRow): BenchRow {
  return row.goal === undefined ? row : { ...row, holds: meets(row.goal, row.ratio ?? row.value) }
}

/** Wraps rows into the document and writes it when a file is named. */
export function report(
  name: string,
  rows: readonly BenchRow[],
  options: { file?: string; engine?: string },
): BenchReport {
  const done: BenchReport = {
    name,
    date: new Date().toISOString(),
    machine: {
      cpus: cpus().length,
      memGiB: Math.round(totalmem() / 2 ** 30),
      node: process.versions.bun === undefined ? process.version : `bun ${process.versions.bun}`,
      ...(options.engine === undefined ? {} : { engine: options.engine }),
    },
    rows: rows.map(judged),
  }
  if (options.file !== undefined) writeFileSync(options.file, `${JSON.stringify(done, undefined, 2)}\n`)
  return done
}

/** The rows as a table for people. */
export function table(rows: readonly BenchRow[]): string {
  const number = (value: number | undefined) =>
    value === undefined ? '' : String(Number(value.toPrecision(3)))
  const cells = rows.map((row) => [
    row.id,
    `${number(row.value)} ${row.unit}`,
    row.p99 === undefined ? '' : number(row.p99),
    number(row.peer),
    number(row.ratio),
    row.goal === undefined ? '' : `${row.goal} ${row.holds ? 'holds' : 'MISSED'}`,
    row.what,
  ])
  const head = ['row', 'median', 'p99', 'peer', 'ratio', 'goal', 'what']
  const width = head.map((title, i) => Math.max(title.length, ...cells.map((row) => row[i]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, i) => cell.padEnd(width[i] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(head), ...cells.map(line)].join('\n')
}
