import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sourceFlags } from '@sandbox/testing'

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** An event of the page. */
export interface PageEvent {
  readonly type: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever the page says; tests match its shape
  readonly data: any
}

/** The demo as a process of its own. */
export interface RunningDemo extends AsyncDisposable {
  readonly child: ChildProcess
  readonly stateDir: string
  /** Everything it printed so far. */
  output(): string
  /** Its exit code once it has ended; `undefined` when a signal ended it. */
  readonly exited: Promise<number | undefined>
  /** The page's address, once it is printed. Rejects when the demo ends before. */
  readonly address: Promise<string>
}

/** A short path for a state directory that another account could pass. */
export function freshStateDir(): string {
  return join(tmpdir(), `sbx-demo-${randomBytes(4).toString('hex')}`)
}

/** Starts `main.ts` with these arguments, without a terminal. */
export function runDemo(
  args: readonly string[],
  options: { env?: Record<string, string>; stateDir?: string } = {},
): RunningDemo {
  const stateDir = options.stateDir ?? freshStateDir()
  const env = { ...process.env, ...options.env }
  const child = spawn(process.execPath, [...sourceFlags, MAIN, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  const address = new Promise<string>((found, fail) => {
    const look = (chunk: Buffer): void => {
      printed += chunk
      const said = /page\s+(http:[^\s"]+)["\n]/.exec(printed)?.[1]
      if (said !== undefined) found(said)
    }
    child.stdout.on('data', look)
    child.stderr.on('data', look)
    child.on('close', () => fail(new TypeError(`the demo ended before it was there:\n${printed}`)))
  })
  address.catch(() => undefined)
  const exited = new Promise<number | undefined>((done) =>
    child.on('close', (code) => done(code ?? undefined)),
  )
  return {
    child,
    stateDir,
    output: () => printed,
    exited,
    address,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGINT')
      await exited
      rmSync(stateDir, { recursive: true, force: true })
    },
  }
}

/** Talks to the page as a browser does. */
export function visit(address: string) {
  const { origin, hash } = new URL(address)
  const headers = { 'x-demo-token': hash.slice(1) }
  return {
    say: async (channel: string, speaker: string, text: string): Promise<number> => {
      const response = await fetch(`${origin}/api/messages`, {
        method: 'POST',
        headers: { ...headers, origin, 'content-type': 'application/json' },
        body: JSON.stringify({ channel, speaker, text }),
      })
      return response.status
    },
    /** All events until `enough` says so; `begin` is called once the line is open. */
    events: async (
      enough: (seen: readonly PageEvent[]) => boolean,
      begin?: () => unknown,
    ): Promise<PageEvent[]> => {
      const response = await fetch(`${origin}/api/events`, { headers })
      const seen: PageEvent[] = []
      let text = ''
      const decoder = new TextDecoder()
      for await (const chunk of response.body ?? []) {
        text += decoder.decode(chunk, { stream: true })
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) {
          const [, type = '', data = ''] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? []
          seen.push({ type, data: JSON.parse(data) })
          if (seen.length === 1) await begin?.()
          if (enough(seen)) return seen
        }
      }
      return seen
    },
  }
}

/** The replies among events. */
export function replies(seen: readonly PageEvent[]): { channel: string; text: string; turnId?: string }[] {
  return seen
    .filter(({ type, data }) => type === 'entry' && data.entry.kind === 'reply')
    .map(({ data }) => data.entry)
}

/** The last receipt of every turn that ended. */
export function receipts(seen: readonly PageEvent[]) {
  return seen
    .filter(({ type, data }) => type === 'turn' && data.receipt.state === 'settled')
    .map(({ data }) => data.receipt)
}

/** Ids of all processes, but `except`, that have `text` in their command line. */
export function processesWith(text: string, except: number | undefined): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === except || Number(pid) === process.pid) return false
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(text)
    } catch {
      return false
    }
  })
}

/** Names below the run root that belong to a turn, and not to the installation. */
export function turnDirectories(stateDir: string): string[] {
  const own = new Set(['install-id', 'process', 'engine'])
  return readdirSync(join(stateDir, 'run')).filter((name) => !own.has(name))
}
