import { limits } from '@sandbox/protocol'

const LONGEST_TIMER_MS = 2_147_483_647

/** When a worker ends by itself: 10 s before the host's deadline, or at half of a short time. */
export function softDeadlineMs(remainingMs: number): number {
  const margin = Math.min(limits.SOFT_DEADLINE_MS, remainingMs / 2)
  return Math.min(Math.floor(remainingMs - margin), LONGEST_TIMER_MS)
}
