import { redact, type Secret } from '@sandbox/credential-scope'
import type { CallEvent } from './call-event.ts'

/**
 * What others said about a call that failed: the head of an upstream's error, of the error event in its stream, or of
 * what a tool or a hook threw, with its causes. At most 2,000 characters; the secrets that the turn has spent are
 * masked, and whatever else looks like one. It may hold words of a guest: for a log, never for a chat.
 */
export type FailureSink = (event: CallEvent, words: string) => void

const WORDS_CHARS = 2000
/** Longer bodies are not decoded: what could be masked away is in here. */
const HEAD_BYTES = 16 * 1024
const MOST_CAUSES = 5

const decoder = new TextDecoder()

/** The head of an error body. */
export function bodyWords(bytes: Uint8Array): string {
  return decoder.decode(bytes.subarray(0, HEAD_BYTES))
}

/** An error with its causes, however they are linked (W-27). */
export function causeWords(cause: unknown): string | undefined {
  const words: string[] = []
  for (let error = cause; error !== undefined && words.length < MOST_CAUSES; ) {
    words.push(error instanceof Error ? `${error.name}: ${error.message}` : typeof error)
    error = error instanceof Error ? error.cause : undefined
  }
  return words.length === 0 ? undefined : words.join(' < ')
}

/** Words that may stand in a log. */
export function loggedWords(words: string, secrets: Iterable<Secret>): string {
  return redact(words, secrets, { maxChars: WORDS_CHARS })
}
