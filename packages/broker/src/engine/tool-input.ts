import { Compile } from 'typebox/schema'

/** Says where and why an input is not what its schema asks for; `undefined` = it is. */
export type InputCheck = (input: Readonly<Record<string, unknown>>) => string | undefined

const MOST_CHARS = 200
const OTHER_CHARS = /[^\x21-\x7e]/g

/**
 * Compiles a JSON Schema object (typebox writes such objects too), so that inputs can be held against it. What the
 * check says names the place as a JSON pointer and the keyword, never a value. Names in the pointer may be the
 * guest's: the text is short and printable, and for the host only. Keywords that the schema does not have are
 * ignored, `format` included when its name is unknown.
 * @throws SyntaxError when a `pattern` is no regular expression.
 */
export function compileInput(schema: object): InputCheck {
  const validator = Compile(schema)
  return (input) => {
    try {
      if (validator.Check(input)) return undefined
      const [, errors] = validator.Errors(input)
      // `false` in place of a schema is reported at the property, and once more, with its name, by who forbids it.
      const error = errors.find(({ keyword }) => keyword !== 'boolean') ?? errors[0]
      return place(error?.instancePath ?? '', error?.keyword ?? 'schema')
    } catch {
      // A reference that leads back to itself asks for nothing and never ends.
      return place('', '$ref')
    }
  }
}

function place(pointer: string, keyword: string): string {
  const where = pointer === '' ? 'the input' : pointer.replace(OTHER_CHARS, '?').slice(0, MOST_CHARS)
  return `${where}: ${keyword}`
}
