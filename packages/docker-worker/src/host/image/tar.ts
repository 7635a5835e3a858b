import { createReadStream } from 'node:fs'
import { DriverError } from '../../errors.ts'

/** One member of an archive. */
export interface TarEntry {
  /** Relative, without leading slash. A directory ends in a slash. */
  readonly path: string
  /** Permission bits. */
  readonly mode: number
  /** Content: bytes, or a file of this machine with its size. Absent for a directory. */
  readonly content?: Uint8Array | { readonly file: string; readonly size: number }
}

const BLOCK = 512
const NAME_BYTES = 100
const PREFIX_BYTES = 155

/**
 * Writes a tar archive (POSIX ustar), chunk by chunk. Reproducible: owner 0, time 0, order as given. A file whose size
 * is not the one given is an error, not a broken archive.
 */
export async function* tarStream(entries: readonly TarEntry[]): AsyncGenerator<Uint8Array> {
  for (const entry of entries) {
    const size = sizeOf(entry)
    yield tarHead(entry, size)
    yield* contentOf(entry, size)
    if (size % BLOCK !== 0) yield Buffer.alloc(BLOCK - (size % BLOCK))
  }
  yield Buffer.alloc(2 * BLOCK)
}

/** The size that {@link tarStream} will have, in bytes. */
export function tarBytes(entries: readonly TarEntry[]): number {
  const blocks = (size: number) => BLOCK + Math.ceil(size / BLOCK) * BLOCK
  return entries.reduce((sum, entry) => sum + blocks(sizeOf(entry)), 2 * BLOCK)
}

/** The head of one member: 512 bytes. For archives whose content is made elsewhere. */
export function tarHead({ path, mode }: Pick<TarEntry, 'path' | 'mode'>, size: number): Uint8Array {
  const head = Buffer.alloc(BLOCK)
  const [prefix, name] = splitPath(path)
  head.write(name, 0, NAME_BYTES)
  const octal = (value: number, at: number, digits: number) =>
    head.write(`${value.toString(8).padStart(digits, '0')}\0`, at, 'latin1')
  octal(mode, 100, 7)
  octal(0, 108, 7)
  octal(0, 116, 7)
  octal(size, 124, 11)
  octal(0, 136, 11)
  head.write(path.endsWith('/') ? '5' : '0', 156, 'latin1')
  head.write('ustar\x0000', 257, 'latin1')
  head.write(prefix, 345, PREFIX_BYTES)
  head.fill(' ', 148, 156)
  const sum = head.reduce((total, byte) => total + byte, 0)
  head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return head
}

function splitPath(path: string): [prefix: string, name: string] {
  if (Buffer.byteLength(path) <= NAME_BYTES) return ['', path]
  for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)]
    if (Buffer.byteLength(prefix) <= PREFIX_BYTES && name !== '' && Buffer.byteLength(name) <= NAME_BYTES) {
      return [prefix, name]
    }
  }
  throw new DriverError('runtime_unsuitable', `The path ${path} is too long for an image layer.`)
}

function sizeOf({ content }: TarEntry): number {
  if (content === undefined) return 0
  return content instanceof Uint8Array ? content.length : content.size
}

async function* contentOf({ content }: TarEntry, size: number): AsyncGenerator<Uint8Array> {
  if (content === undefined) return
  if (content instanceof Uint8Array) {
    yield content
    return
  }
  let seen = 0
  for await (const chunk of createReadStream(content.file, { highWaterMark: 2 ** 20 })) {
    seen += (chunk as Buffer).length
    yield chunk as Buffer
  }
  if (seen !== size) {
    throw new DriverError('runtime_unsuitable', `The file ${content.file} changed while it was read.`)
  }
}
