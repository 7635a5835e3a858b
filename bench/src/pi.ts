import { type PiParts, startPiParts } from './pi/parts.ts'
import { idle } from './pi-idle.ts'
import { streams } from './pi-stream.ts'
import type { BenchRow } from './report.ts'

/** The Pi broker with every check on: what it adds to a stream, and what channels cost that wait. */
export async function run(): Promise<readonly BenchRow[]> {
  return [...(await withParts(streams)), ...(await withParts(idle))]
}

async function withParts(rows: (parts: PiParts) => Promise<BenchRow[]>): Promise<BenchRow[]> {
  await using parts = await startPiParts()
  return await rows(parts)
}
