/**
 * Why an attachment, or its picture, did not go with the message:
 *
 * - `too_many`: beyond the 20th
 * - `too_large`: over 25 MiB, or over what the message may still bring
 * - `address_refused`: its address is none that may be asked
 * - `not_delivered`: the service did not answer, or broke off
 * - `status`: the service answered with an error
 * - `empty`: there is nothing in it
 * - `image_too_large`, `image_refused`: the file is there, its picture is not shown to the model
 */
export type AttachmentFailureReason =
  | 'too_many'
  | 'too_large'
  | 'address_refused'
  | 'not_delivered'
  | 'status'
  | 'empty'
  | 'image_too_large'
  | 'image_refused'

/** One attachment that did not go with the message as it was. */
export interface AttachmentFailure {
  /** As the chat service names it; untrusted. */
  readonly name: string
  readonly reason: AttachmentFailureReason
  /** Of the service's answer, with `status`. */
  readonly status?: number
}

const WORDS: Readonly<Record<AttachmentFailureReason, string>> = {
  too_many: 'too many attachments',
  too_large: 'too large',
  address_refused: 'its address is not allowed',
  not_delivered: 'could not be fetched',
  status: 'could not be fetched',
  empty: 'empty',
  image_too_large: 'kept as a file; too large to be looked at',
  image_refused: 'kept as a file; could not be looked at',
}

/** Fixed words for a failure: no address, no path, nothing of an exception. */
export function failureText({ name, reason, status }: AttachmentFailure): string {
  const shown = name.toWellFormed().replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')
  const words = reason === 'status' ? `${WORDS.status} (${status})` : WORDS[reason]
  return `${shown.length > 100 ? `${shown.slice(0, 100).toWellFormed()}…` : shown}: ${words}`
}
