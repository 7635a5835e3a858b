import { connectEngine } from '../host/container/docker-client.ts'
import { sweepInstall } from '../host/container/reconcile.ts'
import { checkedInstallId } from '../resolve-options.ts'

/** Removes every container of an install and returns the ids of their workers. */
export async function sweepEngine(socket: string, installId: string): Promise<readonly string[]> {
  const id = checkedInstallId(installId)
  return sweepInstall(await connectEngine(socket), id, new Set())
}
