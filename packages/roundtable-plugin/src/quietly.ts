/**
 * Calls a function of somebody who only looks on: what it throws, and what its promise rejects with, is nobody's. Without
 * that a listener that is `async` could end the process.
 */
export function quietly(call: () => unknown): void {
  try {
    const called = call()
    if (called instanceof Promise) called.catch(() => {})
  } catch {
    // There is nobody else to tell.
  }
}
