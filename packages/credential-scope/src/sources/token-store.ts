import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { CredentialError } from '../errors.ts'
import type { TokenPair, TokenStore } from '../refreshing.ts'
import { holdLock } from './lock-file.ts'
import { readPrivateFile } from './private-file.ts'

const STORE_BYTES = 1024 * 1024

/**
 * Keeps a login in a JSON file, `{ "accessToken", "refreshToken", "expiresAt" }`, mode 0600 and owned by this
 * process's user; other fields in it are kept. It is replaced in one step: written beside it, synced, renamed. The
 * lock is a file beside it (`PATH.lock`) with the identity of its holder; the lock of a process that is gone is
 * taken over. All processes that share a login must run on one host.
 *
 * `lockMs`: longest wait for the lock, in milliseconds; omitted = 60,000.
 */
export function tokenStore(options: { path: string; lockMs?: number }): TokenStore {
  const path = resolve(options.path)
  const { lockMs = 60_000 } = options
  return {
    name: options.path,
    read: async () => readPair(path),
    write: async (pair) =>
      replaceFile(path, `${JSON.stringify({ ...readFields(path), ...pair }, null, 2)}\n`),
    exclusively: async (task) => {
      const lock = await holdLock(`${path}.lock`, lockMs)
      try {
        return await task()
      } finally {
        await lock[Symbol.asyncDispose]()
      }
    },
  }
}

function readPair(path: string): TokenPair | undefined {
  const fields = readFields(path)
  if (fields === undefined) return undefined
  const { accessToken, refreshToken, expiresAt } = fields
  if (typeof accessToken !== 'string' || typeof refreshToken !== 'string' || typeof expiresAt !== 'number') {
    throw new CredentialError(
      'source_invalid',
      `${path}: it must have accessToken, refreshToken and expiresAt`,
    )
  }
  return { accessToken, refreshToken, expiresAt }
}

function readFields(path: string): Record<string, unknown> | undefined {
  let text: string
  try {
    ;({ text } = readPrivateFile(path, STORE_BYTES))
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return { ...parsed }
  } catch {
    // The parser's message quotes the text.
  }
  throw new CredentialError('source_invalid', `${path}: it is not a JSON object`)
}

function isGone(error: unknown): boolean {
  const cause = (error as { cause?: { code?: unknown } }).cause
  return CredentialError.isInstance(error) && cause?.code === 'ENOENT'
}

async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  // The name is durable only when its directory is.
  const directory = await open(dirname(path), 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
