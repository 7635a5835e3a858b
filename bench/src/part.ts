import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A process of the bench that answers questions. */
export interface Part {
  readonly pid: number
  ask<T>(message: object): Promise<T>
}

/** CPU time and memory of a part. */
export interface Usage {
  readonly cpuUs: number
  readonly rssBytes: number
}

/** How a part is started. */
export interface PartOptions {
  readonly args?: readonly string[]
  readonly execPath?: string
  /** Arguments of the runtime, besides this process' own. */
  readonly flags?: readonly string[]
}

/** Starts a part; its first message is there. The process is added to `children`. */
export async function startPart(
  children: ChildProcess[],
  file: URL,
  { args = [], execPath = process.execPath, flags = [] }: PartOptions = {},
): Promise<Part & { readonly first: unknown }> {
  const execArgv = [...process.execArgv, ...flags]
  const child = fork(fileURLToPath(file), args, { execPath, execArgv })
  children.push(child)
  const first = await answer(child)
  let last: Promise<unknown> = Promise.resolve()
  return {
    first,
    pid: child.pid ?? 0,
    ask: <T>(message: object) => {
      const asked = last.then(() => {
        const answered = answer(child)
        child.send(message)
        return answered
      })
      last = asked
      return asked as Promise<T>
    },
  }
}

/** Ends processes and waits for it. */
export async function endAll(children: readonly ChildProcess[]): Promise<void> {
  for (const child of children) child.kill()
  await Promise.all(
    children.map((child) => child.exitCode ?? new Promise((done) => child.once('exit', done))),
  )
}

function answer(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onExit = () => reject(new TypeError('bench: a part ended'))
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      resolve(message)
    })
  })
}
