import { revealSecret, type Secret } from './secret.ts'
import { secretPatterns } from './secret-patterns.ts'

/** Masks known secrets in all encodings. */
export function redact(text: string, secrets: Iterable<Secret> = []): string {
  let clean = text
  for (const secret of secrets) {
    for (const pattern of secretPatterns(revealSecret(secret))) {
      clean = clean.replaceAll(pattern.bytes.toString('latin1'), '[secret]')
    }
  }
  return clean
}
