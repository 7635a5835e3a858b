/** The text of a checked JSON string: `start` and `end` are the offsets between its quotes. */
export function decodeString(bytes: Buffer, start: number, end: number, escaped: boolean): string {
  return escaped ? JSON.parse(bytes.toString('utf8', start - 1, end + 1)) : bytes.toString('utf8', start, end)
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

/** The first characters of a checked JSON string, without a look at the rest. For ASCII: other bytes come as they are. */
export function decodeStart(bytes: Buffer, start: number, end: number, chars: number): string {
  let text = ''
  for (let at = start; at < end && text.length < chars; at++) {
    if (bytes[at] !== 0x5c) {
      text += String.fromCharCode(bytes[at] as number)
      continue
    }
    const sign = String.fromCharCode(bytes[at + 1] as number)
    if (sign === 'u') {
      text += String.fromCharCode(Number.parseInt(bytes.toString('latin1', at + 2, at + 6), 16))
      at += 5
    } else {
      text += ESCAPES[sign] ?? sign
      at += 1
    }
  }
  return text
}
