/** A span of a text that is cut out (no `bytes`) or written over. `start` = `end` writes between two bytes. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly bytes?: Uint8Array
}

const NOTHING = new Uint8Array(0)

/**
 * Puts edits in the order of the text. Of spans that overlap the outer one counts: a cut object takes along what
 * was cut within it. Of two edits of one span the later one counts.
 */
export function orderEdits(edits: readonly Edit[]): Edit[] {
  if (isOrdered(edits)) return [...edits]
  const ordered: Edit[] = []
  let at = 0
  for (const edit of edits.toReversed().toSorted((a, b) => a.start - b.start || b.end - a.end)) {
    if (edit.start < at) continue
    ordered.push(edit)
    at = edit.end
  }
  return ordered
}

/** The usual case: few edits, apart from each other, made in the order of the text. */
function isOrdered(edits: readonly Edit[]): boolean {
  let at = -1
  for (const { start, end } of edits) {
    if (start <= at) return false
    at = end
  }
  return true
}

/** The parts of a text that remain after ordered edits, and those that were written, in turn. Views, no copies. */
export function* editedParts(
  bytes: Uint8Array,
  edits: readonly Edit[],
  { start = 0, end = bytes.length }: { start?: number; end?: number } = {},
): Generator<Uint8Array> {
  let at = start
  for (const edit of edits) {
    yield bytes.subarray(at, edit.start)
    yield edit.bytes ?? NOTHING
    at = edit.end
  }
  yield bytes.subarray(at, end)
}
