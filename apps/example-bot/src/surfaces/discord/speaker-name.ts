/** Longer than any name that Discord takes, shorter than what a turn can carry. */
const NAME_CODE_POINTS = 64

/** Letters and symbols that draw nothing; a name of these alone would be no name. */
const INVISIBLE = /^(?:\s|\u115f|\u1160|\u200c|\u200d|\u2800|\u3164|\uffa0)*$/

/**
 * A display name fit for a prompt, a log and a page: one line, without control characters and direction marks, cut
 * to 64 code points. Anybody chooses their own name, so it never says who somebody is; the id does.
 */
export function speakerName(shown: string, id: string): string {
  const plain = shown
    .toWellFormed()
    .normalize('NFC')
    // The joiners stay: some scripts, and many emoji, need them.
    .replace(/(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}\p{Z}]+/gu, ' ')
    .trim()
  return INVISIBLE.test(plain) ? `user ${id}` : [...plain].slice(0, NAME_CODE_POINTS).join('').trimEnd()
}
