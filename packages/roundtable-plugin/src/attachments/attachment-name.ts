/** On Linux, with everything in front of it. */
const FILE_NAME_BYTES = 255
/** Of the name that the attachment came with. */
const NAME_BYTES = 120
/** Longer than any extension that a person meets. */
const EXTENSION_BYTES = 16

const bytesOf = (text: string) => Buffer.byteLength(text)

/**
 * The name under which an attachment is kept: `<messageId>-<index>-<name>`, `<messageId>-ref-<index>-<name>` for one of
 * the message that was replied to. Slashes, backslashes, control characters and leading dots become `_`; a long name is
 * cut by bytes, between characters, and keeps its end, where the extension is.
 */
export function attachmentName(
  messageId: string,
  { index, name, quoted }: { readonly index: number; readonly name: string; readonly quoted: boolean },
): string {
  // Lone surrogates cannot be written as UTF-8.
  const plain = name
    .toWellFormed()
    .normalize('NFC')
    .replace(/[/\\\p{Cc}]/gu, '_')
    .replace(/^\.+/, (dots) => '_'.repeat(dots.length))
  const place = `${messageId}${quoted ? '-ref' : ''}-${index}-`
  const most = Math.min(NAME_BYTES, FILE_NAME_BYTES - bytesOf(place))
  return place + shortened(plain === '' ? 'file' : plain, most)
}

function shortened(name: string, most: number): string {
  if (bytesOf(name) <= most) return name
  const dot = name.lastIndexOf('.')
  const extension = dot > 0 && bytesOf(name.slice(dot)) <= EXTENSION_BYTES ? name.slice(dot) : ''
  const stem = name.slice(0, name.length - extension.length)
  return firstBytes(stem, most - bytesOf(extension)) + extension
}

/** As many whole characters, as a person counts them, as fit. */
function firstBytes(text: string, most: number): string {
  let kept = ''
  let size = 0
  for (const { segment } of new Intl.Segmenter('und', { granularity: 'grapheme' }).segment(text)) {
    size += bytesOf(segment)
    if (size > most) break
    kept += segment
  }
  return kept
}
