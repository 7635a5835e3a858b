import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DriverError } from '../../errors.ts'
import type { ProcessMark } from './process-table.ts'

/** One file per running worker, so that the host after this one finds what this one left. */
export interface WorkerFiles {
  /** Makes an empty one before there is a process. Rejects with `start_failed` when there is one already. */
  reserve(workerId: string): Promise<void>
  /** Fills it. */
  note(workerId: string, mark: ProcessMark): Promise<void>
  remove(workerId: string): Promise<void>
  /** Every file; one that cannot be read has no mark. */
  list(): Promise<readonly { readonly workerId: string; readonly mark: ProcessMark | undefined }[]>
}

/** Keeps the files in `directory`, which has to exist. */
export function workerFiles(directory: string): WorkerFiles {
  const path = (workerId: string) => join(directory, `${workerId}.json`)
  return {
    reserve: (workerId) =>
      writeFile(path(workerId), '', { flag: 'wx', mode: 0o600 }).catch((cause: unknown) => {
        throw new DriverError('start_failed', 'A worker with this workerId exists already.', { cause })
      }),
    note: (workerId, mark) => writeFile(path(workerId), JSON.stringify(mark), { mode: 0o600 }),
    remove: (workerId) => rm(path(workerId), { force: true }),
    async list() {
      const names = (await readdir(directory)).filter((name) => /^[0-9a-f]{16}\.json$/.test(name))
      return Promise.all(
        names.map(async (name) => ({
          workerId: name.slice(0, 16),
          mark: await readFile(join(directory, name), 'utf8').then(readMark, () => undefined),
        })),
      )
    },
  }
}

function readMark(text: string): ProcessMark | undefined {
  try {
    const { pid, startTime, bootId } = JSON.parse(text) as Record<string, unknown>
    const usable = Number.isInteger(pid) && (pid as number) > 1 && typeof startTime === 'string'
    return usable && typeof bootId === 'string' ? { pid: pid as number, startTime, bootId } : undefined
  } catch {
    return undefined
  }
}
