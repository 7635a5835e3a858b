/** What stands on a terminal of so many columns after it was sent this: the part of its language that readline uses. */
export function screenOf(sent: string, columns: number): string[] {
  const rows: string[][] = [[]]
  let [row, column] = [0, 0]
  const put = (character: string) => {
    if (column === columns) [row, column] = [row + 1, 0]
    const line = rows[row] ?? []
    rows[row] = line
    while (line.length < column) line.push(' ')
    line[column] = character
    column += 1
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals speak in them
  for (const [part, count = '', letter] of sent.matchAll(/\u001b\[(\d*)(?:;\d+)?([A-Z])|./gsu)) {
    const n = Number(count || 1)
    if (part === '\r') column = 0
    else if (part === '\n') [row, column] = [row + 1, 0]
    else if (letter === undefined) put(part)
    else if (letter === 'A') row = Math.max(0, row - n)
    else if (letter === 'B') row += n
    else if (letter === 'C') column += n
    else if (letter === 'D') column = Math.max(0, column - n)
    else if (letter === 'G') column = n - 1
    else if (letter === 'J') {
      rows.length = row + 1
      rows[row] = (rows[row] ?? []).slice(0, column)
    } else if (letter === 'K') rows[row] = (rows[row] ?? []).slice(0, column)
    rows[row] ??= []
  }
  return rows.map((line) => line.join('').trimEnd())
}
