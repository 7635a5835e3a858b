import type { Config } from '../config.ts'
import { type DoctorRow, doctor } from './doctor.ts'

/**
 * `doctor`: tries what the bot of a configuration needs, and prints a row for each thing. Resolves with the exit code:
 * 0 when everything is well, 1 when something is not.
 */
export async function doctorCommand(config: Extract<Config, { command: 'doctor' }>): Promise<number> {
  const { json } = config
  const rows = await doctor({
    ...config,
    onRow: (row) => json || process.stdout.write(`${lineOf(row)}\n`),
  })
  if (json) process.stdout.write(`${JSON.stringify(rows, undefined, 2)}\n`)
  return rows.every(({ state }) => state === 'ok') ? 0 : 1
}

function lineOf({ id, state, found, mend }: DoctorRow): string {
  const words = { ok: 'ok  ', failed: 'FAIL', skipped: 'skip' }[state]
  const indented = (text: string) => text.replaceAll('\n', `\n${' '.repeat(19)}`)
  return `${words}  ${id.padEnd(12)} ${indented(found)}${mend === undefined ? '' : indented(`\n→ ${mend}`)}`
}
