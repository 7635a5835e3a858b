/** Numbers from a seed: the same seed, the same numbers, on every machine. */
export class Random {
  #state: number

  /** `seed`: a whole number, of which 32 bits count. */
  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 up to, and without, 1. (mulberry32) */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from 0 up to, and without, `below`. */
  below(below: number): number {
    return Math.floor(this.next() * below)
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }

  /** Up to `most` things. */
  list<T>(most: number, make: (index: number) => T): T[] {
    return Array.from({ length: this.below(most + 1) }, (_, index) => make(index))
  }

  /** Text of up to `most` characters, odd ones among them. */
  text(most: number): string {
    return this.list(most, () => this.pick(CHARACTERS)).join('')
  }

  /** Cuts bytes into pieces, tiny ones mostly. Each is a buffer of its own, at an offset of its own. */
  pieces(bytes: Uint8Array): Uint8Array[] {
    const pieces: Uint8Array[] = []
    const most = this.pick([1, 2, 5, 40, 1000])
    for (let at = 0; at < bytes.length; ) {
      const size = 1 + this.below(most)
      const shift = this.below(4)
      const room = new Uint8Array(shift + size)
      const part = bytes.subarray(at, at + size)
      room.set(part, shift)
      pieces.push(room.subarray(shift, shift + part.length))
      at += size
    }
    return pieces
  }

  /** Changes a few bytes: flips, cuts, repeats, writes in what parsers stumble over. */
  mutated(bytes: Uint8Array): Uint8Array {
    let current = Uint8Array.from(bytes)
    for (let times = this.below(4); times > 0; times -= 1) {
      const at = this.below(current.length + 1)
      const end = Math.min(current.length, at + this.below(8))
      const written = this.pick<() => Uint8Array>([
        () => new Uint8Array(0),
        () => Uint8Array.of(this.below(256)),
        () => encoder.encode(this.pick(STUMBLES)),
        () => current.slice(at, at + this.below(30)),
      ])()
      current = Uint8Array.from([...current.subarray(0, at), ...written, ...current.subarray(end)])
    }
    return current
  }
}

const encoder = new TextEncoder()

const CHARACTERS = [
  ...'abcdefgh XYZ019_-.$#/:"\\{}[],',
  '\n',
  '\r',
  '\t',
  '\0',
  '\u007f',
  'é',
  '日',
  '🎉',
  '\u2028',
  '\ufeff',
  '__proto__',
  'constructor',
  'https://x.example/',
]

const STUMBLES = [
  ...'"\\{}[]:,\n\r\t /#?',
  '\r\n',
  '\0',
  '\\u0000',
  '\\ud800',
  '\\u005',
  '1e400',
  '-0',
  '00',
  '1e',
  'null',
  'tru',
  '\ufeff',
  'data:',
  '"a":1,',
  '[[[[[[[[',
]
