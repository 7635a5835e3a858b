/** One system call to try: its number and up to six arguments. */
export type ProbeCall = readonly [number: number, ...args: readonly number[]]

const BASE = 0x400000n
const HEAD_BYTES = 64 + 56
const CALL_BYTES = 56

/**
 * Writes an x86-64 program that makes each call once, in order, and puts the results to stdout: 56 bytes for each, the
 * first 8 of them the result, as the kernel left it in `rax`. No compiler and no library is in between.
 */
export function probeProgram(calls: readonly ProbeCall[]): Buffer {
  const tableBytes = calls.length * CALL_BYTES
  const code = Buffer.concat(machineCode(calls.length, tableBytes))
  // The table follows the code: what the code reaches for is as far away as the code is long.
  const program = Buffer.concat([elfHead(code.length + tableBytes), code, table(calls)])
  return program
}

/** The results of {@link probeProgram}, one for each call. */
export function probeResults(output: Buffer): readonly number[] {
  const results: number[] = []
  for (let at = 0; at < output.length; at += CALL_BYTES) results.push(Number(output.readBigInt64LE(at)))
  return results
}

function machineCode(count: number, tableBytes: number): Buffer[] {
  const load = (bytes: readonly number[]) => Buffer.from(bytes)
  const number = (value: number) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(value)
    return bytes
  }
  const loop = load([
    ...[0x48, 0x8b, 0x03], // mov rax, [rbx]
    ...[0x48, 0x8b, 0x7b, 8], // mov rdi, [rbx+8]
    ...[0x48, 0x8b, 0x73, 16], // mov rsi, [rbx+16]
    ...[0x48, 0x8b, 0x53, 24], // mov rdx, [rbx+24]
    ...[0x4c, 0x8b, 0x53, 32], // mov r10, [rbx+32]
    ...[0x4c, 0x8b, 0x43, 40], // mov r8, [rbx+40]
    ...[0x4c, 0x8b, 0x4b, 48], // mov r9, [rbx+48]
    ...[0x0f, 0x05], // syscall
    ...[0x48, 0x89, 0x03], // mov [rbx], rax
    ...[0x48, 0x83, 0xc3, CALL_BYTES], // add rbx, 56
    ...[0xff, 0xcd], // dec ebp
  ])
  const back = load([0x75, 256 - (loop.length + 2)]) // jnz loop
  // mov eax, 1 (write); mov edi, 1; mov edx, size
  const write = Buffer.concat([
    load([0xb8]),
    number(1),
    load([0xbf]),
    number(1),
    load([0xba]),
    number(tableBytes),
  ])
  const exit = Buffer.concat([load([0x0f, 0x05, 0xb8]), number(231), load([0x31, 0xff, 0x0f, 0x05])]) // exit_group(0)
  const toTable = exit.length
  const fromFirst = 5 + loop.length + back.length + write.length + 7 + exit.length
  return [
    Buffer.concat([load([0x48, 0x8d, 0x1d]), number(fromFirst)]), // lea rbx, [rip+table]
    Buffer.concat([load([0xbd]), number(count)]), // mov ebp, count
    loop,
    back,
    write,
    Buffer.concat([load([0x48, 0x8d, 0x35]), number(toTable)]), // lea rsi, [rip+table]
    exit,
  ]
}

function table(calls: readonly ProbeCall[]): Buffer {
  const bytes = Buffer.alloc(calls.length * CALL_BYTES)
  for (const [index, words] of calls.entries()) {
    for (const [place, word] of words.entries())
      bytes.writeBigInt64LE(BigInt(word), index * CALL_BYTES + place * 8)
  }
  return bytes
}

/** One segment that can be read, written and executed. @see elf(5) */
function elfHead(size: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  head.writeUInt16LE(2, 16) // ET_EXEC
  head.writeUInt16LE(62, 18) // EM_X86_64
  head.writeUInt32LE(1, 20)
  head.writeBigUInt64LE(BASE + BigInt(HEAD_BYTES), 24) // entry
  head.writeBigUInt64LE(64n, 32) // program headers
  head.writeUInt16LE(64, 52)
  head.writeUInt16LE(56, 54)
  head.writeUInt16LE(1, 56)
  head.writeUInt32LE(1, 64) // PT_LOAD
  head.writeUInt32LE(7, 68) // rwx
  head.writeBigUInt64LE(BASE, 80)
  head.writeBigUInt64LE(BASE, 88)
  head.writeBigUInt64LE(BigInt(HEAD_BYTES + size), 96)
  head.writeBigUInt64LE(BigInt(HEAD_BYTES + size), 104)
  head.writeBigUInt64LE(4096n, 112)
  return head
}
