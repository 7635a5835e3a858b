import { type FileHandle, open } from 'node:fs/promises'
import { DriverError } from '../../errors.ts'

/** What we read of a Linux program. Layout: elf(5), 64-bit, little-endian. */
export interface ElfProgram {
  /** As image manifests name it. */
  readonly architecture: 'amd64' | 'arm64'
  /** The dynamic loader; `undefined` for a static program. */
  readonly loader: string | undefined
}

const MACHINES: Readonly<Record<number, ElfProgram['architecture']>> = { 62: 'amd64', 183: 'arm64' }
const OS_SYSV = 0
const OS_LINUX = 3
const PT_INTERP = 3
const HEADER_BYTES = 64
const MAX_PROGRAM_HEADERS = 128

/** Reads the head of a Linux program. Throws `runtime_unsuitable` for anything else. */
export async function readElf(path: string): Promise<ElfProgram> {
  try {
    return await readProgram(path)
  } catch (cause) {
    if (DriverError.isInstance(cause)) throw cause
    throw new DriverError('runtime_unsuitable', `The runtime ${path} cannot be read.`, { cause })
  }
}

async function readProgram(path: string): Promise<ElfProgram> {
  const file = await open(path, 'r')
  try {
    const head = await readAt(file, 0, HEADER_BYTES)
    const magic = head.length === HEADER_BYTES && head.toString('latin1', 0, 4) === '\u007fELF'
    const linux = magic && head[4] === 2 && head[5] === 1 && (head[7] === OS_SYSV || head[7] === OS_LINUX)
    if (!linux) {
      const text = `The runtime ${path} is not a 64-bit Linux program (a script or another system's program?). Give the real Node or Bun binary with --runtime PATH.`
      throw new DriverError('runtime_unsuitable', text)
    }
    const architecture = MACHINES[head.readUInt16LE(18)]
    if (!architecture) {
      const text = `The runtime ${path} is for another processor; x86-64 and arm64 are known.`
      throw new DriverError('runtime_unsuitable', text)
    }
    return { architecture, loader: await readLoader(file, head) }
  } finally {
    await file.close()
  }
}

async function readLoader(file: FileHandle, head: Buffer): Promise<string | undefined> {
  const entryBytes = head.readUInt16LE(54)
  const count = Math.min(head.readUInt16LE(56), MAX_PROGRAM_HEADERS)
  const table = await readAt(file, Number(head.readBigUInt64LE(32)), entryBytes * count)
  for (let at = 0; entryBytes >= 56 && at + entryBytes <= table.length; at += entryBytes) {
    if (table.readUInt32LE(at) !== PT_INTERP) continue
    const offset = Number(table.readBigUInt64LE(at + 8))
    const bytes = Math.min(Number(table.readBigUInt64LE(at + 32)), 4096)
    return (await readAt(file, offset, bytes)).toString('utf8').replace(/\0+$/, '')
  }
  return undefined
}

async function readAt(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes)
  const { bytesRead } = await file.read(buffer, 0, bytes, position)
  return buffer.subarray(0, bytesRead)
}
