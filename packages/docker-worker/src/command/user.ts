import { DriverError } from '../errors.ts'
import type { WorkerUser } from '../options.ts'
import { checkedUser } from '../resolve-options.ts'

/** No account of a usual machine has this number, and it is not the one that everybody calls nobody. */
const ROOTS_WORKER: WorkerUser = { uid: 64_200, gid: 64_200 }

/** Reads `--user UID:GID`. Without it: this account, or a fixed high number in a root shell. Never root. */
export function namedUser(text: string | undefined): WorkerUser {
  if (text === undefined) {
    const [uid, gid] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0]
    return uid === 0 ? ROOTS_WORKER : checkedUser({ uid, gid })
  }
  const [, uid, gid] = /^(\d{1,10}):(\d{1,10})$/.exec(text) ?? []
  if (uid === undefined || gid === undefined) {
    throw new DriverError('options_invalid', '--user has to be two numbers: UID:GID.')
  }
  return checkedUser({ uid: Number(uid), gid: Number(gid) })
}
