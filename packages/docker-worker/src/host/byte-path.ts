/**
 * Paths in which each character is a byte (`latin1`). A guest may give a file any name but text: read as text, such a
 * name leads to nothing, and its file could be neither counted nor removed.
 */
export const BYTES = { encoding: 'latin1' } as const

/** A path of the host's own as one of bytes. */
export function bytePath(path: string): string {
  return Buffer.from(path).toString('latin1')
}

/** What the file system takes for a path of bytes. */
export function onDisk(path: string): Buffer {
  return Buffer.from(path, 'latin1')
}
