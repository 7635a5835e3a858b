import { statSync } from 'node:fs'

/** Where tests find an engine: `SANDBOX_DOCKER_SOCKET`, else the default socket when it is there. */
export function dockerSocket(): string | undefined {
  const named = process.env.SANDBOX_DOCKER_SOCKET
  if (named !== undefined && named !== '') return named
  try {
    return statSync('/var/run/docker.sock').isSocket() ? '/var/run/docker.sock' : undefined
  } catch {
    return undefined
  }
}

/**
 * Decides whether Docker tests run: `describe.skipIf(!dockerGate())`. With `SANDBOX_REQUIRE_DOCKER=1` a missing
 * engine is an error, so that a run that must cover Docker cannot be green without it.
 */
export function dockerGate(): boolean {
  if (dockerSocket() !== undefined) return true
  if (process.env.SANDBOX_REQUIRE_DOCKER === '1') {
    throw new TypeError('SANDBOX_REQUIRE_DOCKER=1, but no engine: set SANDBOX_DOCKER_SOCKET to its socket')
  }
  return false
}
