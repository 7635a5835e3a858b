import { MASK, maskShapes } from './redact-shapes.ts'
import { revealSecret, type Secret } from './secret.ts'
import { secretPatterns } from './secret-patterns.ts'

/** Extra text that is looked at beyond `maxChars`, since masking makes text shorter. */
const SLACK_CHARS = 8192

/**
 * Makes text fit for a log: masks the given secrets in all their encodings, then whatever looks like a
 * credential (user info in URLs, authorization and cookie headers, bearer values, well-known key shapes, JWTs,
 * private key blocks, values of secret-looking names). Control characters become spaces; tab and newline stay.
 *
 * `maxChars`: longest answer in UTF-16 code units; longer text is cut and ends in `…`; omitted = no limit.
 */
export function redact(
  text: string,
  secrets: Iterable<Secret> = [],
  options: { maxChars?: number } = {},
): string {
  const { maxChars = Number.POSITIVE_INFINITY } = options
  const tokens = [...secrets].map(revealSecret)
  const patterns = tokens
    .flatMap(secretPatterns)
    .map(({ encoding, bytes }) => ({ text: bytes.toString('latin1'), loose: encoding.startsWith('base64') }))
    .sort((a, b) => b.text.length - a.text.length)

  // A secret that the first cut splits is no longer recognised: as much as it may be is not shown.
  const margin = Math.max(SLACK_CHARS, patterns[0]?.text.length ?? 0)
  const head = text.length > maxChars + 2 * margin ? text.slice(0, maxChars + 2 * margin) : text
  let clean = head
  for (const pattern of patterns) clean = mask(clean, pattern.text, pattern.loose)
  clean = spaceControls(maskShapes(clean))
  const shown = Math.min(maxChars, head === text ? clean.length : clean.length - margin)
  return shown < clean.length ? `${wholeCharacters(clean.slice(0, Math.max(0, shown - 1)))}…` : clean
}

/** `loose`: up to two neighbours at each side, and padding, belong to the same base64 text. */
function mask(text: string, pattern: string, loose: boolean): string {
  if (!loose) return text.replaceAll(pattern, MASK)
  let clean = ''
  let from = 0
  for (let at = text.indexOf(pattern); at >= 0; at = text.indexOf(pattern, from)) {
    let start = at
    let end = at + pattern.length
    while (start > from && at - start < 2 && isBase64(text, start - 1)) start--
    for (let more = 0; more < 4 && isBase64(text, end); more++) end++
    clean += text.slice(from, start) + MASK
    from = end
  }
  return clean + text.slice(from)
}

function isBase64(text: string, index: number): boolean {
  return /[A-Za-z0-9+/_=-]/.test(text.charAt(index))
}

function spaceControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced.
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ' ')
}

function wholeCharacters(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text
}
