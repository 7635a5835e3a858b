import { CallRefusal } from '../call/refusal.ts'
import { bytesCarry, type TextMatcher } from '../reflection/scan-json.ts'

/**
 * The head of a server's text. It is searched before it is cut: of a secret that the cut went through, too little would
 * be left to be found.
 * @throws CallRefusal `reflection`
 */
export function headOfText(text: string, mostChars: number, matcher: TextMatcher): string {
  if (text.length <= mostChars) return text
  if (bytesCarry(Buffer.from(text), matcher)) throw new CallRefusal('reflection')
  return text.slice(0, mostChars)
}
