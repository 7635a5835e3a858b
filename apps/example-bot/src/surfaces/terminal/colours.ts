import { styleText } from 'node:util'

/** How a line of the terminal may look. */
export type Look = 'bold' | 'dim' | 'red' | 'yellow' | 'cyan' | 'green'

/** Dresses text; without colours it is the text itself. */
export type Paint = (look: Look, text: string) => string

/** Colours for a terminal, or none. */
export function painter(colours: boolean): Paint {
  return colours ? (look, text) => styleText(look, text, { validateStream: false }) : (_, text) => text
}
