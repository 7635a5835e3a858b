import { readFile } from 'node:fs/promises'

/**
 * True when a new process was refused for the limit of the control group that `pid` is in. False when that cannot be
 * read, for example because the process has ended: its group is gone then.
 */
export async function metPidLimit(
  pid: number,
  { proc = '/proc', cgroups = '/sys/fs/cgroup' } = {},
): Promise<boolean> {
  const groups = await readFile(`${proc}/${pid}/cgroup`, 'utf8').catch(() => '')
  for (const [, controllers = '', path = ''] of groups.matchAll(/^\d+:([^:]*):(.*)$/gm)) {
    // cgroups(7): version 2 has one line without controllers, version 1 one line for each.
    const top = controllers === '' ? cgroups : `${cgroups}/pids`
    if (controllers !== '' && !controllers.split(',').includes('pids')) continue
    const events = await readFile(`${top}${path}/pids.events`, 'utf8').catch(() => '')
    if (Number(/^max (\d+)$/m.exec(events)?.[1] ?? 0) > 0) return true
  }
  return false
}
