import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SealedCreateBody } from './sealed-spec.ts'

const INLINE = 'seccomp='
/** Podman makes these writable in a container whose root is read-only, unless something is mounted there. */
const SCRATCH = ['/run', '/var/tmp']
const NOTHING = 'ro,noexec,nosuid,nodev,size=65536'
/** Podman asks for 1048576 processes for each account, which a service without CAP_SYS_RESOURCE may not give. */
const MOST_PROCESSES = 30_000

/**
 * Creates a container on Podman, which takes Docker's body but for a few things: the system call filter is the path of
 * a file (this account's alone; Podman reads it while it creates, then it is gone), every limit that is not named is
 * set to its own default, and a health check that is none needs systemd.
 */
export async function createOnPodman<T>(
  body: SealedCreateBody,
  create: (body: SealedCreateBody) => Promise<T>,
): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'sbx-profile-'))
  try {
    const path = join(dir, 'seccomp.json')
    const options = body.HostConfig.SecurityOpt.map(async (option) => {
      if (!option.startsWith(INLINE)) return option
      await writeFile(path, option.slice(INLINE.length), { mode: 0o600 })
      return `${INLINE}${path}`
    })
    const SecurityOpt = await Promise.all(options)
    const Tmpfs = {
      ...Object.fromEntries(SCRATCH.map((where) => [where, NOTHING])),
      ...body.HostConfig.Tmpfs,
    }
    const most = await processLimit()
    const Ulimits = [...body.HostConfig.Ulimits, { Name: 'nproc', Soft: most, Hard: most }]
    const { Healthcheck: _, ...rest } = body
    const own = { ...rest, HostConfig: { ...body.HostConfig, SecurityOpt, Tmpfs, Ulimits } }
    return await create(own as SealedCreateBody)
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
}

/** What this process may have: the service on the same machine has as much. */
async function processLimit(): Promise<number> {
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const hard = Number(/^Max processes\s+\S+\s+(\d+)/m.exec(text)?.[1] ?? MOST_PROCESSES)
  return Math.min(hard, MOST_PROCESSES)
}
