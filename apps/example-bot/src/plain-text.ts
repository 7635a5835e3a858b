/** What a terminal would obey (control characters, escape sequences, direction marks) is shown as a box. */
export function plain(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu, '\u25a1')
}
