import { statfsSync } from 'node:fs'
import type { Posture } from '@sandbox/protocol'
import { lines, readText } from './posture-text.ts'

/** Where to look. */
export interface LimitSources {
  /** Such as `/proc/self`. */
  readonly self: string
  /** Such as `/sys/fs/cgroup`: in a namespace of its own that is the worker's own group. */
  readonly cgroup: string
  /** Such as `/tmp`. */
  readonly tmp: string
}

/** Reads what the kernel holds this process to. What is not limited or cannot be read is `null`. */
export function readLimits({ self, cgroup, tmp }: LimitSources): NonNullable<Posture['limits']> {
  const own = processLimits(readText(`${self}/limits`))
  return {
    ...groupLimits(cgroup),
    openFiles: own.get('Max open files') ?? null,
    fileBytes: own.get('Max file size') ?? null,
    coreBytes: own.get('Max core file size') ?? null,
    tmpBytes: sizeOf(tmp),
  }
}

type GroupLimits = Pick<NonNullable<Posture['limits']>, 'memoryBytes' | 'swapBytes' | 'cpus' | 'pids'>

/** cgroups(7): version 2 has one directory, version 1 one for each controller. */
function groupLimits(top: string): GroupLimits {
  const version2 = readText(`${top}/cgroup.controllers`) !== ''
  if (version2) {
    const [quota, period] = readText(`${top}/cpu.max`).trim().split(' ')
    return {
      memoryBytes: number(readText(`${top}/memory.max`)),
      swapBytes: number(readText(`${top}/memory.swap.max`)),
      cpus: ratio(number(quota), number(period)),
      pids: number(readText(`${top}/pids.max`)),
    }
  }
  const memoryBytes = number(readText(`${top}/memory/memory.limit_in_bytes`))
  const both = number(readText(`${top}/memory/memory.memsw.limit_in_bytes`))
  return {
    memoryBytes,
    swapBytes: memoryBytes === null || both === null ? null : Math.max(0, both - memoryBytes),
    cpus: ratio(
      number(readText(`${top}/cpu/cpu.cfs_quota_us`)),
      number(readText(`${top}/cpu/cpu.cfs_period_us`)),
    ),
    pids: number(readText(`${top}/pids/pids.max`)),
  }
}

function ratio(quota: number | null, period: number | null): number | null {
  return quota === null || period === null || period === 0 ? null : quota / period
}

/** `max`, `-1` and what is larger than any machine say that there is no limit. */
function number(text: string | undefined): number | null {
  const value = /^\d+\s*$/.test(text ?? '') ? Number(text) : Number.NaN
  return Number.isSafeInteger(value) ? value : null
}

/** `/proc/self/limits`: name, soft and hard limit in columns. The hard one counts: the soft one can be raised to it. */
function processLimits(text: string): Map<string, number> {
  const found = new Map<string, number>()
  for (const line of lines(text)) {
    const [, name = '', hard = ''] = /^(.+?) {2,}\S+ +(\d+)\b/.exec(line) ?? []
    if (hard !== '' && Number.isSafeInteger(Number(hard))) found.set(name, Number(hard))
  }
  return found
}

function sizeOf(directory: string): number | null {
  try {
    const { bsize, blocks } = statfsSync(directory)
    const bytes = bsize * blocks
    return Number.isSafeInteger(bytes) ? bytes : null
  } catch {
    return null
  }
}
