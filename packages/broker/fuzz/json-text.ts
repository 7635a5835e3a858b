import type { Random } from './random.ts'

/**
 * A value as JSON text, spelled in one of its many ways: white space, escapes. `odd`: numbers become others, now
 * and then a name comes twice.
 */
export function jsonText(random: Random, value: unknown, odd = true): string {
  const plain = random.once(2)
  const space = () => (plain || !random.once(4) ? '' : random.pick([' ', '\n', '\t', '\r\n', '   ']))
  const write = (node: unknown): string => {
    if (typeof node === 'string') return plain ? JSON.stringify(node) : escaped(random, node)
    if (Array.isArray(node)) return `[${space()}${node.map((item) => write(item) + space()).join(',')}]`
    if (typeof node !== 'object' || node === null) return odd ? number(random, node) : JSON.stringify(node)
    const fields = Object.entries(node).map(
      ([name, item]) => `${write(name)}${space()}:${space()}${write(item)}`,
    )
    if (odd && fields.length > 0 && random.once(60)) fields.push(random.pick(fields))
    return `{${space()}${fields.join(`${space()},${space()}`)}}`
  }
  return `${space()}${write(value)}${space()}`
}

function number(random: Random, node: unknown): string {
  if (typeof node !== 'number' || !random.once(4)) return JSON.stringify(node) ?? 'null'
  return random.pick(['1.0', '1e2', '-0', '12345678901234567890', '0.10', '1E+1', '-1.5e-3'])
}

function escaped(random: Random, text: string): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
  const all = units.map((unit) => {
    // Half a character has no bytes of its own.
    const half = unit >= 0xd800 && unit < 0xe000
    if (half || random.once(6)) return `\\u${unit.toString(16).padStart(4, '0')}`
    return JSON.stringify(String.fromCharCode(unit)).slice(1, -1)
  })
  return `"${all.join('')}"`
}
