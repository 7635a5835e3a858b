import { SandboxPluginError } from './errors.ts'

/** How long a chat may take to take something: then whoever gave it goes on. */
const DELIVERY_MS = 120_000

/**
 * Waits for a delivery no longer than `ms`: one that never settles must not hold its place for ever. What becomes of it
 * later is nobody's. Rejects with what it rejects or throws.
 * @throws SandboxPluginError `delivery_late`
 */
export async function inTime(deliver: () => unknown, ms = DELIVERY_MS): Promise<void> {
  const late = Promise.withResolvers<never>()
  const problem = `it was not taken within ${ms} ms`
  const timer = setTimeout(() => late.reject(new SandboxPluginError('delivery_late', problem)), ms)
  try {
    await Promise.race([deliver(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}
