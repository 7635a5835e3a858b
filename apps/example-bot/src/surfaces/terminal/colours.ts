import { styleText } from 'node:util'

/** How a line of the terminal may look. */
export type Look = 'bold' | 'dim' | 'red' | 'yellow' | 'cyan' | 'green'

/** Dresses text; without colours it is the text itself. */
export type Paint = (look: Look, text: string) => string

/** Colours for a terminal, or none. */
export function painter(colours: boolean): Paint {
  return colours ? (look, text) => styleText(look, text, { validateStream: false }) : (_, text) => text
}

/** What a terminal would obey (control characters, escape sequences, direction marks) is shown as a box. */
export function plain(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu, '\u25a1')
}
