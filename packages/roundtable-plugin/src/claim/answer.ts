/** The longest chunk that chat services take, in UTF-16 units. */
const CHUNK_CHARS = 2_000

/** What the chat is told when a turn could not be run at all. Differs from every text of a failed turn. */
export const THROWN_TEXT = 'Something went wrong on my side, and this message was not answered.'

/** What the chat is told about a message whose turn came when the host had stopped. */
export const STOPPING_TEXT = 'I am being stopped, so this message was not answered. Please try again later.'

/** What the chat is told about a message with more text than a turn can carry. */
export const TOO_LONG_TEXT = 'This message is too long for me. Please make it shorter.'

/** What the chat is told about a message that no turn can carry for another reason: the channel or who speaks. */
export const NOT_TAKEN_TEXT =
  'I could not take this message as it came. If your name here is very long, please shorten it; otherwise please tell the owner of this bot.'

/** A paragraph or a fenced block, and what separates it from what came before. */
interface Unit {
  readonly text: string
  readonly glue: '\n' | '\n\n'
  readonly fence?: { readonly open: string; readonly body: readonly string[]; readonly close: string }
}

/**
 * Cuts a reply into chunks of at most `limit` UTF-16 units. Paragraphs and fenced blocks stay whole when they
 * fit; a longer fenced block becomes several, each opened with the same line and closed; longer prose is cut at
 * line ends, then after sentences, then between words, then between code points. Blank text gives no chunk.
 */
export function splitReply(text: string, limit = CHUNK_CHARS): string[] {
  if (!Number.isInteger(limit) || limit < 2) throw new TypeError('limit must be a whole number from 2 on')
  const chunks: string[] = []
  let chunk = ''
  for (const unit of unitsOf(text.replaceAll(/\r\n?/g, '\n'))) {
    const joined = chunk === '' ? unit.text : chunk + unit.glue + unit.text
    if (joined.length <= limit) {
      chunk = joined
      continue
    }
    if (chunk !== '') chunks.push(chunk)
    const pieces = unit.text.length <= limit ? [unit.text] : cut(unit, limit)
    chunk = pieces.pop() ?? ''
    chunks.push(...pieces)
  }
  if (chunk !== '') chunks.push(chunk)
  return chunks
}

function unitsOf(text: string): Unit[] {
  const units: Unit[] = []
  const lines = text.split('\n')
  let glue: Unit['glue'] = '\n\n'
  let prose: string[] = []
  const flush = () => {
    if (prose.length > 0) {
      units.push({ text: prose.join('\n'), glue })
      glue = '\n'
    }
    prose = []
  }
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] as string
    const marker = fenceMarker(line)
    if (marker !== undefined) {
      flush()
      const end = fenceEnd(lines, at + 1, marker)
      units.push({ ...fenced(lines.slice(at, end + 1), marker), glue })
      glue = '\n'
      at = end
    } else if (line.trim() === '') {
      flush()
      glue = '\n\n'
    } else prose.push(line)
  }
  flush()
  return units
}

/** CommonMark 4.5: three or more backticks (no backtick after them) or tildes; indented as far as a list wants it. */
function fenceMarker(line: string): string | undefined {
  return /^[ \t]*(`{3,})[^`]*$/.exec(line)?.[1] ?? /^[ \t]*(~{3,})/.exec(line)?.[1]
}

/** The index of the closing line, or of the last line when the block is never closed. */
function fenceEnd(lines: readonly string[], from: number, marker: string): number {
  for (let at = from; at < lines.length; at += 1) if (closes(lines[at] as string, marker)) return at
  return lines.length - 1
}

function closes(line: string, marker: string): boolean {
  const text = line.trim()
  return text.length >= marker.length && text.replaceAll(marker[0] as string, '') === ''
}

function fenced(lines: readonly string[], marker: string): Omit<Unit, 'glue'> {
  const open = lines[0] as string
  const closed = lines.length > 1 && closes(lines.at(-1) as string, marker)
  const body = lines.slice(1, closed ? -1 : undefined)
  const text = closed ? lines.join('\n') : [...lines, marker].join('\n')
  return { text, fence: { open, body, close: marker } }
}

function cut({ text, fence }: Unit, limit: number): string[] {
  if (fence === undefined) {
    return packLines(text.split('\n'), limit, cutProse).filter(isShown)
  }
  // A first line that is mostly text becomes text; repeating it in every piece would leave no room.
  const short = fence.open.length <= limit / 4
  const open = short ? fence.open : fence.close
  const body = short ? fence.body : [fence.open.trim().slice(fence.close.length), ...fence.body]
  const room = limit - open.length - fence.close.length - 2
  if (room < 2) return packLines(text.split('\n'), limit).filter(isShown)
  return packLines(body, room).map((piece) => `${open}\n${piece}\n${fence.close}`)
}

function isShown(piece: string): boolean {
  return piece.trim() !== ''
}

/** Lines, put together up to `limit`; a longer line is cut. */
function packLines(lines: readonly string[], limit: number, cutLong = cutLine): string[] {
  const pieces: string[] = []
  let piece: string | undefined
  for (const part of lines.flatMap((line) => cutLong(line, limit))) {
    const joined: string = piece === undefined ? part : `${piece}\n${part}`
    if (joined.length <= limit) piece = joined
    else {
      if (piece !== undefined) pieces.push(piece)
      piece = part
    }
  }
  if (piece !== undefined) pieces.push(piece)
  return pieces
}

function cutLine(line: string, limit: number): string[] {
  const parts: string[] = []
  let from = 0
  while (line.length - from > limit) {
    let to = from + limit
    if (isHighSurrogate(line.charCodeAt(to - 1))) to -= 1
    parts.push(line.slice(from, to))
    from = to
  }
  parts.push(line.slice(from))
  return parts
}

/** Where a sentence ends, and where a word does. */
const BORDERS = [/[.!?\u2026][)\]"'\u2019\u201d\u00bb*_]*(?=\s)|[\u3002\uff01\uff1f]/gu, /(?=\s)/gu]

/** The space at a border is left out: the chat shows pieces apart from each other. */
function cutProse(line: string, limit: number): string[] {
  const parts: string[] = []
  let rest = line
  while (rest.length > limit) {
    const part = cutLine(rest, proseEnd(rest, limit) ?? limit)[0] as string
    parts.push(part.trimEnd())
    rest = rest.slice(part.length).trimStart()
  }
  return rest === '' && parts.length > 0 ? parts : [...parts, rest]
}

/** The last border in the second half of what fits: a better one in the first would leave too little in its piece. */
function proseEnd(text: string, limit: number): number | undefined {
  for (const border of BORDERS) {
    const ends = [...text.slice(0, limit + 1).matchAll(border)].map(
      ({ index, 0: mark }) => index + mark.length,
    )
    const end = ends.findLast((at) => at > limit / 2 && at <= limit)
    if (end !== undefined) return end
  }
  return undefined
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}
