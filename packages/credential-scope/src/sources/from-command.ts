import { type ChildProcess, spawn } from 'node:child_process'
import { basename } from 'node:path'
import type { CredentialGetter } from '../credential-source.ts'
import { CredentialError } from '../errors.ts'
import type { SandboxCredentialScope } from '../scope.ts'
import { notedGetter } from '../traced-getter.ts'

/** What {@link fromCommand} needs. */
export interface FromCommandOptions {
  /** The program and its arguments. It is started as it stands; no shell ever sees it. */
  readonly command: readonly [string, ...string[]]
  /** Longest run in milliseconds; then it is killed with all that it started. Omitted = 8,000. */
  readonly timeoutMs?: number
  /**
   * Its whole environment; omitted = `PATH` and `HOME` of this process. `SANDBOX_CHANNEL` and
   * `SANDBOX_SPEAKER_ID` are added.
   */
  readonly env?: Readonly<Record<string, string>>
  /** Where it runs; omitted = here. */
  readonly cwd?: string
}

const TIMEOUT_MS = 8_000
const OUTPUT_BYTES = 64 * 1024

/**
 * A credential that a program of the host prints: the credential alone, or JSON
 * `{ "token": …, "expiresAt"?: …, "origin"?: … }` with `expiresAt` as RFC 3339 text or milliseconds since 1970.
 * Printing nothing means that there is no credential. It runs on each call: put `cached` around it.
 *
 * A run that fails, outlives its time or prints something else fails the call; what it printed is in no message.
 *
 * @throws TypeError for an empty command or an unusable time.
 */
export function fromCommand(options: FromCommandOptions): CredentialGetter {
  const [program] = options.command
  const { timeoutMs = TIMEOUT_MS } = options
  if (typeof program !== 'string' || program === '') throw new TypeError('fromCommand needs a program')
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) throw new TypeError('timeoutMs must be above 0')
  const name = basename(program)
  return notedGetter(async (scope, request, note) => {
    note.source = `command:${name}`
    return parsePrinted(await run({ ...options, timeoutMs }, scope, request?.signal), name)
  })
}

function run(
  { command, cwd, env, timeoutMs }: FromCommandOptions & { timeoutMs: number },
  scope: SandboxCredentialScope,
  signal: AbortSignal | undefined,
): Promise<string> {
  const [program, ...args] = command
  const fail = (what: string, cause?: unknown) =>
    new CredentialError('source_invalid', `The command ${basename(program)} ${what}.`, { cause })
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(fail('was not started, the call is over', signal.reason))
    const child = spawn(program, args, {
      ...(cwd !== undefined && { cwd }),
      env: { ...(env ?? hostEnv()), SANDBOX_CHANNEL: scope.channel, SANDBOX_SPEAKER_ID: scope.speaker.id },
      stdio: ['ignore', 'pipe', 'ignore'],
      // Its own process group, so that what it started ends with it.
      detached: true,
    })
    const detach = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
    const stop = (error: CredentialError) => {
      detach()
      killGroup(child)
      reject(error)
    }
    const onAbort = () => stop(fail('was ended, the call is over', signal?.reason))
    const timer = setTimeout(() => stop(fail(`did not end within ${timeoutMs} ms`)), timeoutMs)
    signal?.addEventListener('abort', onAbort, { once: true })

    const chunks: Buffer[] = []
    let size = 0
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > OUTPUT_BYTES) stop(fail(`printed more than ${OUTPUT_BYTES} bytes`))
      else chunks.push(chunk)
    })
    child.on('error', (cause) => stop(fail('could not be started', cause)))
    child.on('close', (code, killedBy) => {
      detach()
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'))
      else reject(fail(`ended with ${code === null ? `signal ${killedBy}` : `exit code ${code}`}`))
    })
  })
}

function hostEnv(): Record<string, string> {
  const { PATH, HOME } = process.env
  return { ...(PATH !== undefined && { PATH }), ...(HOME !== undefined && { HOME }) }
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {}
}

function parsePrinted(
  text: string,
  name: string,
): string | { token: string; origin?: string; expiresAt?: number } | undefined {
  const printed = text.trim()
  if (printed === '') return undefined
  if (!printed.startsWith('{')) return printed
  const { token, origin, expiresAt } = asObject(printed, name)
  if (token === undefined || token === null) return undefined
  if (typeof token !== 'string' || (origin !== undefined && typeof origin !== 'string')) throw odd(name)
  return { token, ...(origin !== undefined && { origin }), ...withExpiry(expiresAt, name) }
}

function asObject(printed: string, name: string): Record<string, unknown> {
  try {
    return JSON.parse(printed)
  } catch {
    // The parser's message quotes the text.
    throw odd(name)
  }
}

function withExpiry(expiresAt: unknown, name: string): { expiresAt?: number } {
  if (expiresAt === undefined || expiresAt === null) return {}
  const time = typeof expiresAt === 'string' ? Date.parse(expiresAt) : expiresAt
  if (typeof time !== 'number' || !Number.isFinite(time)) throw odd(name)
  return { expiresAt: time }
}

function odd(name: string): CredentialError {
  return new CredentialError(
    'source_invalid',
    `The command ${name} printed neither a credential nor { "token": …, "expiresAt"?: …, "origin"?: … }.`,
  )
}
