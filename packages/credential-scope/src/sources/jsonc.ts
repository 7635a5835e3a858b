import { CredentialError } from '../errors.ts'

/** A place in a JSON text: names of members and indexes of elements, from the outside in. */
export type JsoncPath = readonly (string | number)[]

/** JSON that people wrote: the value, and where each part of it stands. */
export interface Jsonc {
  readonly value: unknown
  /** The line, from 1, of a member's name or of an element; of the nearest part around it when it is not there. */
  lineOf(path: JsoncPath): number
}

const DEEPEST = 64

/**
 * Reads JSON in which comments of both kinds, and a comma after the last element, may stand. A name that is given twice
 * is refused: who reads the file sees the first one, and the last one would count.
 *
 * @throws CredentialError `source_invalid`, `line 3: …`. No text of the file is in the message.
 */
export function readJsonc(text: string): Jsonc {
  const lineAt = (offset: number) => text.slice(0, offset).split('\n').length
  return {
    value: new Reader(text).read(),
    lineOf(path) {
      let best = { depth: 0, offset: 0 }
      new Reader(text, (found, offset) => {
        const fits = found.length > best.depth && found.every((part, index) => part === path[index])
        if (fits) best = { depth: found.length, offset }
      }).read()
      return lineAt(best.offset)
    },
  }
}

/** Reads one text by recursive descent. */
class Reader {
  readonly #text: string
  /** Told of every member and element before its value is read. */
  readonly #onPart: (path: JsoncPath, offset: number) => void
  readonly #path: (string | number)[] = []
  #at = 0

  constructor(text: string, onPart: (path: JsoncPath, offset: number) => void = () => {}) {
    this.#text = text
    this.#onPart = onPart
  }

  read(): unknown {
    if (this.#text.startsWith('\ufeff')) this.#at = 1
    this.#skip()
    const value = this.#value()
    this.#skip()
    if (this.#at < this.#text.length) throw this.#problem('something follows after the end')
    return value
  }

  #value(): unknown {
    if (this.#path.length >= DEEPEST) throw this.#problem(`it is nested deeper than ${DEEPEST} levels`)
    const first = this.#text[this.#at]
    if (first === '{') return this.#object()
    if (first === '[') return this.#array()
    if (first === '"') return this.#string()
    return this.#word()
  }

  #object(): Record<string, unknown> {
    const members = new Map<string, unknown>()
    this.#elements('}', () => {
      const start = this.#at
      if (this.#text[start] !== '"') throw this.#problem('a name in double quotes is missing')
      const name = this.#string()
      if (members.has(name)) throw this.#problem('a name is given twice')
      this.#skip()
      if (this.#text[this.#at] !== ':') throw this.#problem('a colon after the name is missing')
      this.#at += 1
      this.#skip()
      members.set(name, this.#part(name, start))
    })
    return Object.fromEntries(members)
  }

  #array(): unknown[] {
    const elements: unknown[] = []
    this.#elements(']', () => {
      elements.push(this.#part(elements.length, this.#at))
    })
    return elements
  }

  #part(name: string | number, start: number): unknown {
    this.#path.push(name)
    this.#onPart(this.#path, start)
    const value = this.#value()
    this.#path.pop()
    return value
  }

  #elements(end: string, readOne: () => void): void {
    this.#at += 1
    this.#skip()
    while (this.#text[this.#at] !== end) {
      readOne()
      this.#skip()
      if (this.#text[this.#at] === ',') this.#at += 1
      else if (this.#text[this.#at] !== end) throw this.#problem(`a comma or ${end} is missing before here`)
      this.#skip()
    }
    this.#at += 1
  }

  #string(): string {
    const found = this.#match(/"(?:[^"\\\n]|\\.)*"/y)
    if (found === undefined) throw this.#problem('a text is not closed on its line')
    return this.#parsed(found, 'a text has a character or an escape that JSON does not know') as string
  }

  #word(): unknown {
    const found = this.#match(/[^\s,:"'[\]{}/]+/y)
    if (found === undefined) throw this.#problem('a value is missing')
    return this.#parsed(found, 'a value is no text in double quotes, no number, and not true, false or null')
  }

  #parsed(source: string, problem: string): unknown {
    try {
      return JSON.parse(source) as unknown
    } catch {
      this.#at -= source.length
      throw this.#problem(problem)
    }
  }

  /** White space and comments. */
  #skip(): void {
    this.#match(/(?:[ \t\r\n]+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y)
    if (this.#text.startsWith('/*', this.#at)) throw this.#problem('a comment is not closed')
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)?.[0]
    this.#at += found?.length ?? 0
    return found
  }

  #problem(what: string): CredentialError {
    const line = this.#text.slice(0, this.#at).split('\n').length
    return new CredentialError('source_invalid', `line ${line}: ${what}`)
  }
}
