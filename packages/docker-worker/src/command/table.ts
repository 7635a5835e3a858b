import type { DoctorRow } from './doctor.ts'

/** What comes from an engine or a guest is shown without its control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: taking them out is the purpose
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g

/** Pads the cells of every column but the last to one width. */
export function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  const plain = rows.map((row) => row.map((cell) => cell.replace(CONTROL, '?')))
  const widths = plain[0]?.map((_, column) => Math.max(...plain.map((row) => row[column]?.length ?? 0))) ?? []
  return plain.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** The rows of `doctor` as a table; below a row that is not ok stands what to do. */
export function doctorLines(rows: readonly DoctorRow[]): readonly string[] {
  const [head = '', ...lines] = tableLines([
    ['', 'CHECK', 'CIS', 'EXPECTED', 'FOUND'],
    ...rows.map(({ ok, id, cis, expected, found }) => [ok ? 'ok' : 'FAIL', id, cis, expected, found]),
  ])
  const all = lines.flatMap((line, index) => {
    const mend = rows[index]?.mend
    return mend === undefined ? [line] : [line, `      ${mend.replace(CONTROL, '?')}`]
  })
  const bad = rows.filter(({ ok }) => !ok).length
  const last = bad === 0 ? 'Every wall stands.' : `${bad} of ${rows.length} checks failed.`
  return [head, ...all, '', last]
}
