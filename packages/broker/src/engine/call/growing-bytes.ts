/**
 * Bytes that come in pieces, copied into one memory that grows. Kept by itself, a piece takes some 300 bytes more than it
 * has: whoever sends a body byte by byte would have it take hundreds of times its size.
 */
export class GrowingBytes {
  #room: Buffer
  #size = 0

  /** `roomBytes`: what is there at first. Memory that is not written to is not taken. */
  constructor(roomBytes: number) {
    this.#room = Buffer.allocUnsafeSlow(roomBytes)
  }

  add(piece: Uint8Array): void {
    const size = this.#size + piece.byteLength
    if (size > this.#room.byteLength) {
      const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#room.byteLength))
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
