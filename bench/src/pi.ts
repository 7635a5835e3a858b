import { idle } from './pi-idle.ts'
import { streams } from './pi-stream.ts'
import type { BenchRow } from './report.ts'

/** Pi mode with every check on: what its broker adds to a stream, and what channels cost the host that wait. */
export async function run(): Promise<readonly BenchRow[]> {
  return [...(await streams()), ...(await idle())]
}
