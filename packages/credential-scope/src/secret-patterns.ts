/** One form of a secret, as bytes. */
export interface SecretPattern {
  /** Name of the encoding, for tests and messages. */
  readonly encoding: string
  readonly bytes: Buffer
}

const hex2 = (byte: number) => byte.toString(16).padStart(2, '0')
const isAlphanumeric = (char: string) => /[0-9A-Za-z]/.test(char)

const MARKUP = { '&': '&amp;', '<': '&lt;' }
const TEXT = { ...MARKUP, '>': '&gt;' }
const ATTRIBUTE = { ...TEXT, '"': '&quot;' }
/** What common writers of HTML and XML escape, and how. */
const HTML_ENTITIES: Record<string, Record<string, string>> = {
  markup: MARKUP,
  text: TEXT,
  attribute: ATTRIBUTE,
  decimal: { ...ATTRIBUTE, "'": '&#39;' },
  hex: { ...ATTRIBUTE, "'": '&#x27;' },
  named: { ...ATTRIBUTE, "'": '&apos;' },
  go: { ...TEXT, '"': '&#34;', "'": '&#39;' },
}

/**
 * Every form in which a secret is looked for, without doubles. This is the only such list in the product.
 * `token` is printable ASCII; all forms are ASCII too, UTF-16 apart.
 */
export function secretPatterns(token: string): SecretPattern[] {
  const found = new Map<string, SecretPattern>()
  for (const [encoding, text] of [...textForms(token), ...base64Forms(token)]) {
    if (!found.has(text)) found.set(text, { encoding, bytes: Buffer.from(text, 'latin1') })
  }
  // Without its last NUL the little-endian form is contained in the big-endian one too.
  const wide = Buffer.from(token, 'utf16le').subarray(0, -1)
  return [...found.values(), { encoding: 'utf16', bytes: wide }]
}

function* textForms(token: string): Iterable<[encoding: string, text: string]> {
  const chars = [...token]
  const each = (write: (code: number) => string) => chars.map((char) => write(char.charCodeAt(0))).join('')
  const special = (write: (code: number) => string) =>
    chars.map((char) => (isAlphanumeric(char) ? char : write(char.charCodeAt(0)))).join('')
  const all = { all: each, special }

  yield ['raw', token]
  yield* numberForms(token)
  // RFC 3986, as JavaScript, Python (path, then form), WHATWG forms and whole URIs write it.
  const script = encodeURIComponent(token)
  const strict = script.replace(/[!'()*]/g, percentUpper)
  const path = strict.replaceAll('%2F', '/')
  const plus = strict.replaceAll('%20', '+')
  const form = plus.replaceAll('%2A', '*').replaceAll('~', '%7E')
  for (const [name, text] of Object.entries({ script, strict, path, plus, form, uri: encodeURI(token) })) {
    yield [`percent-${name}`, text]
    yield [`percent-${name}-lower`, text.replace(/%../g, (code) => code.toLowerCase())]
  }
  yield ['hex', each(hex2)]
  yield ['hex-upper', each(hex2).toUpperCase()]
  yield ['json', JSON.stringify(token).slice(1, -1)]
  yield ['json-slash', JSON.stringify(token).slice(1, -1).replaceAll('/', '\\/')]
  yield ['json-html', JSON.stringify(token).slice(1, -1).replace(/[<>&]/g, jsonUnicode)]
  for (const [name, entities] of Object.entries(HTML_ENTITIES)) {
    yield [`html-${name}`, token.replace(/[&<>"']/g, (char) => entities[char] ?? char)]
  }
  for (const [name, map] of Object.entries(all)) {
    yield [`percent-${name}`, map((code) => `%${hex2(code).toUpperCase()}`)]
    yield [`percent-${name}-lower`, map((code) => `%${hex2(code)}`)]
    yield [`json-unicode-${name}`, map((code) => `\\u00${hex2(code)}`)]
    yield [`json-unicode-${name}-upper`, map((code) => `\\u00${hex2(code).toUpperCase()}`)]
    yield [`html-decimal-${name}`, map((code) => `&#${code};`)]
    yield [`html-hex-${name}`, map((code) => `&#x${hex2(code)};`)]
    yield [`html-hex-${name}-upper`, map((code) => `&#x${hex2(code).toUpperCase()};`)]
  }
}

const ROUNDED_CHARS = 16

/**
 * Readers of JSON round a number beyond 2^53: what comes out of one tells all but the last digits of a token that is
 * nothing but digits. Written as JavaScript does, and with an exponent as others do.
 */
function* numberForms(token: string): Iterable<[encoding: string, text: string]> {
  const number = Number(token)
  if (!/^[1-9]\d*$/.test(token) || Number.isSafeInteger(number) || !Number.isFinite(number)) return
  const exponent = number.toExponential()
  // A number with few digits says little of the token, and turns up by chance.
  if (exponent.length < ROUNDED_CHARS) return
  yield ['number', String(number)]
  yield ['number-exponent', exponent]
  yield ['number-exponent-upper', exponent.toUpperCase()]
  yield ['number-exponent-bare', exponent.replace('+', '')]
}

function percentUpper(char: string): string {
  return `%${hex2(char.charCodeAt(0)).toUpperCase()}`
}

function jsonUnicode(char: string): string {
  return `\\u00${hex2(char.charCodeAt(0))}`
}

/**
 * Base64 of the secret inside longer data: the bytes before it shift it to one of three alignments, and the
 * characters at its edges that also depend on a neighbour are cut off (RFC 4648 sections 4 and 5).
 */
function* base64Forms(token: string): Iterable<[encoding: string, text: string]> {
  for (const shift of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(shift), Buffer.from(token, 'latin1')]).toString('base64')
    const stable = text.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + token.length) * 8) / 6))
    yield [`base64+${shift}`, stable]
    yield [`base64url+${shift}`, stable.replaceAll('+', '-').replaceAll('/', '_')]
  }
}
