/** The text when it has at most `chars` UTF-16 code units, else its beginning with an ellipsis. Never a half character. */
export function cutText(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
