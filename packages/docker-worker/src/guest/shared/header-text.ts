/** True for a nonce that can travel in a header. */
export function isHeaderSafe(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21-\x7e]{1,256}$/.test(value)
}
