import type { TurnEvent } from '@sandbox/roundtable-plugin'

/** One wall around a worker, for people. */
export interface PostureFact {
  readonly label: string
  /** False: the wall is not there. */
  readonly holds: boolean
  readonly detail: string
}

type Posture = NonNullable<TurnEvent['posture']>

/** What a worker's hello, compared with the driver's profile by then, shows of its walls. */
export function postureFacts(posture: Posture): readonly PostureFact[] {
  const { interfaces, routes, limits } = posture
  const networks = interfaces.filter((name) => name !== 'lo')
  const capable = Object.entries(posture.capabilities).find(([, mask]) => !/^0+$/.test(mask))
  const writable = posture.mounts
    .filter(({ target, options }) => options.split(',').includes('rw') && !/^\/(proc|sys|dev)\b/.test(target))
    .map(({ target }) => target)
  return [
    fact(
      'No network',
      networks.length + routes.length === 0,
      [...networks, ...routes].join(', ') || 'loopback only',
    ),
    fact('Read-only root', posture.rootReadOnly, `writable: ${writable.slice(0, 4).join(', ') || 'nothing'}`),
    fact(
      'No capabilities',
      capable === undefined,
      capable === undefined ? 'all sets empty' : `${capable[0]} set: ${capable[1].replace(/^0+/, '')}`,
    ),
    fact('No new privileges', posture.noNewPrivs, posture.noNewPrivs ? 'set' : 'not set'),
    fact('System call filter', posture.seccomp === 2, SECCOMP[posture.seccomp] ?? 'unknown'),
    fact('Not root', posture.uid !== 0, `uid ${posture.uid}, gid ${posture.gid}`),
    fact('Memory limit', typeof limits?.memoryBytes === 'number', size(limits?.memoryBytes)),
    fact('Process limit', typeof limits?.pids === 'number', String(limits?.pids ?? 'none')),
  ]
}

const SECCOMP = ['off', 'strict', 'filter on']

function fact(label: string, holds: boolean, detail: string): PostureFact {
  return { label, holds, detail }
}

function size(bytes: number | null | undefined): string {
  return typeof bytes === 'number' ? `${Math.round(bytes / 1024 / 1024)} MiB` : 'none'
}
