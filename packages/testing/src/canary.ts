import { randomBytes } from 'node:crypto'

/** A fresh secret-looking value with characters that every encoding changes. */
export function canary(prefix = 'sk-canary'): string {
  return `${prefix}-${randomBytes(12).toString('hex')}+/=&"<e>`
}

/**
 * Every way in which a test looks for a secret. Written apart from the product's own list on purpose, so that
 * a gap in one shows in the other.
 */
export function encodingsOf(secret: string): ReadonlyMap<string, Buffer> {
  const raw = Buffer.from(secret, 'utf8')
  const found = new Map<string, Buffer>()
  const add = (name: string, text: string) => found.set(name, Buffer.from(text))
  found.set('raw', raw)
  add('percent', encodeURIComponent(secret))
  add(
    'percent-lower',
    encodeURIComponent(secret).replace(/%[0-9A-F]{2}/g, (m) => m.toLowerCase()),
  )
  const full = [...raw].map((b) => `%${b.toString(16).padStart(2, '0')}`).join('')
  add('percent-all', full)
  add('percent-all-upper', full.toUpperCase())
  add('hex', raw.toString('hex'))
  add('hex-upper', raw.toString('hex').toUpperCase())
  for (const pad of [0, 1, 2]) {
    const lead = Buffer.alloc(pad, 'x')
    const text = Buffer.concat([lead, raw]).toString('base64').replace(/=+$/, '')
    const stable = text.slice(pad === 0 ? 0 : pad + 1, Math.floor(((pad + raw.length) * 4) / 3 / 4) * 4)
    add(`base64+${pad}`, stable)
    add(`base64url+${pad}`, stable.replaceAll('+', '-').replaceAll('/', '_'))
  }
  add('json', JSON.stringify(secret).slice(1, -1))
  add('json-unicode', [...secret].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''))
  add(
    'html',
    secret.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] ?? c),
  )
  found.set('utf16le', Buffer.from(secret, 'utf16le'))
  return found
}

/** The names of the encodings in which `haystack` contains `secret`; empty when it is clean. */
export function findSecret(haystack: Uint8Array | string, secret: string): string[] {
  const bytes =
    typeof haystack === 'string'
      ? Buffer.from(haystack)
      : Buffer.from(haystack.buffer, haystack.byteOffset, haystack.byteLength)
  return [...encodingsOf(secret)].filter(([, needle]) => bytes.includes(needle)).map(([name]) => name)
}
