import type { CheckRow } from './check-row.ts'

const HEAD = ['turn', 'channel', 'speaker', 'what', 'key expected', 'key used', 'driver', 'ms', 'outcome', '']

/** Problems shown below a row. */
const SHOWN_PROBLEMS = 12

/** The rows as a table for people, with what is wrong below each row, and a last line that counts. */
export function checkTable(rows: readonly CheckRow[], options: { readonly colour?: boolean } = {}): string {
  const paint = (code: number, text: string) =>
    options.colour === true ? `\x1b[${code}m${text}\x1b[0m` : text
  const cells = rows.map((row) => [
    row.turn === 0 ? '*' : String(row.turn),
    row.channel,
    row.speaker,
    row.about,
    row.keyExpected,
    row.keyUsed,
    row.driver,
    String(row.ms),
    row.outcome,
    row.ok ? 'ok' : 'WRONG',
  ])
  const widths = HEAD.map((title, at) => Math.max(title.length, ...cells.map((row) => row[at]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => pad(cell, widths[at] ?? 0, at))
      .join('  ')
      .trimEnd()
  const lines = [paint(1, line(HEAD))]
  for (const [index, row] of rows.entries()) {
    const text = line(cells[index] ?? [])
    lines.push(row.ok ? text : paint(31, text), ...problemLines(row.problems))
    if (row.attempts !== undefined) lines.push(attemptsLine(row.attempts))
  }
  const wrong = rows.filter(({ ok }) => !ok).length
  const count =
    wrong === 0 ? `all ${rows.length} rows as expected` : `${wrong} of ${rows.length} rows are wrong`
  return `${[...lines, '', paint(wrong === 0 ? 32 : 31, count)].join('\n')}\n`
}

function problemLines(problems: readonly string[]): readonly string[] {
  const shown = problems.slice(0, SHOWN_PROBLEMS).map((problem) => `      ${problem}`)
  const more = problems.length - SHOWN_PROBLEMS
  return more > 0 ? [...shown, `      and ${more} more, see --json`] : shown
}

function attemptsLine(attempts: NonNullable<CheckRow['attempts']>): string {
  const good = attempts.filter(({ ok }) => ok).length
  return `      ${good} of ${attempts.length} attempts ended as they must`
}

/** Numbers to the right, words to the left. */
function pad(cell: string, width: number, at: number): string {
  return at === 0 || HEAD[at] === 'ms' ? cell.padStart(width) : cell.padEnd(width)
}
