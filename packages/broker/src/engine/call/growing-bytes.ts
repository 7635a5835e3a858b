/** Moving more would hold up everybody else: new memory takes far longer than the copying. */
const MOVED_BYTES = 1024 * 1024

/**
 * Bytes that come in pieces, copied into one memory that grows. Kept by itself, a piece takes some 300 bytes more than it
 * has: whoever sends a body byte by byte would have it take hundreds of times its size.
 */
export class GrowingBytes {
  readonly #mostBytes: number
  #room: Buffer
  #size = 0

  /**
   * `roomBytes`: what is there at first. `mostBytes`: what there may be in all; from a mebibyte on there is room for
   * that at once. Memory that is not written to is not taken.
   */
  constructor(roomBytes: number, mostBytes: number) {
    this.#mostBytes = mostBytes
    this.#room = Buffer.allocUnsafeSlow(roomBytes)
  }

  add(piece: Uint8Array): void {
    const size = this.#size + piece.byteLength
    if (size > this.#room.byteLength) {
      const doubled = Math.max(size, 2 * this.#room.byteLength)
      const larger = Buffer.allocUnsafeSlow(doubled > MOVED_BYTES ? Math.max(size, this.#mostBytes) : doubled)
      larger.set(this.bytes)
      this.#room = larger
    }
    this.#room.set(piece, this.#size)
    this.#size = size
  }

  /** All of them so far. */
  get bytes(): Buffer {
    return this.#room.subarray(0, this.#size)
  }
}
