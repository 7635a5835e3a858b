import type { KeyFile } from '@sandbox/credential-scope/sources'

const LOOK_MS = 500

/**
 * Looks at the key file twice a second, so that a bad edit is told (through the key file's own `onProblem`) when it is
 * made and not by the next call. A file that cannot be used at all is told by `onGone`, once. Returns the end.
 */
export function watchKeys(options: {
  readonly keys: Pick<KeyFile, 'rules'>
  readonly onGone: (problem: string) => void
  readonly everyMs?: number
}): () => void {
  let told: string | undefined
  const look = (): void => {
    try {
      options.keys.rules()
      told = undefined
    } catch (error) {
      const problem = (error as Error).message
      if (problem !== told) options.onGone(problem)
      told = problem
    }
  }
  const timer = setInterval(look, options.everyMs ?? LOOK_MS)
  timer.unref()
  return () => clearInterval(timer)
}
