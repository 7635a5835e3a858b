import { randomBytes } from 'node:crypto'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { lockForThisHost } from '../runtime/host-lock.ts'
import { readInstallId } from '../runtime/install-id.ts'
import { type Account, give, privateRoot, workerAccount } from '../runtime/private-directory.ts'
import { removeRunDir } from '../runtime/run-directory.ts'
import { checkSocketPath } from '../runtime/workspace-layout.ts'

/** The directories of one run. */
export interface RunPlace {
  /** Unique: 64 lower-case hex digits. */
  readonly runHash: string
  readonly runDir: string
  readonly socketPath: string
  /** Empty. */
  readonly workspaceDir: string
  /** Removes both. Idempotent. */
  dispose(): Promise<void>
}

const RUN_NAME = /^[0-9a-f]{16}$/
const SOCKET_DIR = 'run'
const LONGEST = join('0'.repeat(16), SOCKET_DIR)

/** The run root of prechecks: a directory for each run, and nothing that outlasts it. */
export class RunPlaces {
  readonly installId: string
  readonly user: Account
  /** Real path. */
  readonly runRoot: string
  readonly #live = new Set<string>()
  #unlock: (() => void) | undefined

  /**
   * Checks the root, makes it when missing (mode 0700), and takes it for this process.
   * @throws SandboxPluginError `user_refused`, `root_refused`, `run_root_locked`
   */
  constructor(options: { readonly runRoot: string; readonly user: Partial<Account> }) {
    this.user = workerAccount(options.user)
    this.runRoot = privateRoot('runRoot', options.runRoot, this.user)
    checkSocketPath(this.runRoot, LONGEST)
    const unlock = lockForThisHost('run root', this.runRoot)
    try {
      this.installId = readInstallId(this.runRoot)
    } catch (cause) {
      unlock()
      throw cause
    }
    this.#unlock = unlock
  }

  /** Makes the directories of a run. */
  async open(): Promise<RunPlace> {
    const name = randomBytes(8).toString('hex')
    const place = join(this.runRoot, name)
    const [runDir, workspaceDir] = [join(place, SOCKET_DIR), join(place, 'workspace')]
    this.#live.add(name)
    const dispose = async () => {
      // Whether it can be removed or not, no run uses it any more: what is left is for the next sweep.
      this.#live.delete(name)
      await removeRunDir(place)
    }
    try {
      for (const path of [place, runDir, workspaceDir]) {
        await mkdir(path, { mode: 0o700 })
        give(path, this.user)
      }
    } catch (cause) {
      await dispose()
      throw cause
    }
    const socketPath = checkSocketPath(this.runRoot, join(name, SOCKET_DIR))
    return { runHash: randomBytes(32).toString('hex'), runDir, socketPath, workspaceDir, dispose }
  }

  /** Removes what no run uses: directories of dead hosts, and those that could not be removed. */
  async sweep(): Promise<readonly string[]> {
    const names = await readdir(this.runRoot)
    const left = names.filter((name) => RUN_NAME.test(name) && !this.#live.has(name))
    for (const name of left) await removeRunDir(join(this.runRoot, name))
    return left
  }

  /** Gives the root back. Idempotent. */
  close(): void {
    this.#unlock?.()
    this.#unlock = undefined
  }
}
