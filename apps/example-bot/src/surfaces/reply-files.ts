import { randomBytes } from 'node:crypto'
import type { ReplyFile } from '@sandbox/roundtable-plugin'
import { plain } from '../plain-text.ts'

/** Most bytes kept, over all channels; the oldest files go first. */
const KEPT_BYTES = 64 * 1024 * 1024
const NAME_CHARS = 120

/** A file of a reply, as a view of the room shows it. */
export interface RoomFile {
  /** Not to be guessed. */
  readonly id: string
  /** A name without a path; nothing in it is obeyed. */
  readonly name: string
  /** In bytes. */
  readonly size: number
}

/** Keeps the files of the last replies in memory. */
export class ReplyFiles {
  readonly #files = new Map<string, RoomFile & { readonly data: Uint8Array }>()
  #bytes = 0

  /** Keeps a file under an id of its own. */
  add({ name, data }: ReplyFile): RoomFile {
    const file = { id: randomBytes(12).toString('hex'), name: baseName(name), size: data.byteLength }
    this.#files.set(file.id, { ...file, data })
    this.#bytes += file.size
    for (const [id, { size }] of this.#files) {
      if (this.#bytes <= KEPT_BYTES) break
      this.#files.delete(id)
      this.#bytes -= size
    }
    return file
  }

  /** The file; `undefined` when there is none, or none any more. */
  find(id: string): (RoomFile & { readonly data: Uint8Array }) | undefined {
    return this.#files.get(id)
  }
}

/** The last part of what a worker calls its file, without what a terminal, a page or a disk would obey. */
function baseName(name: string): string {
  const last = plain(name.replaceAll('\n', ' ').replaceAll('\t', ' ')).split(/[/\\]/).pop() ?? ''
  const short = [...last.trim()].slice(0, NAME_CHARS).join('')
  return /^\.*$/.test(short) ? 'file' : short
}
