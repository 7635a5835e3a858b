import { imagesProblem, isSafeFileName, replyFilesProblem } from '@sandbox/protocol'

/**
 * Checks the images of a message (MD-02): at most 8, PNG, JPEG, WebP or GIF in base64, each 1 byte to 20 MiB, 64 MiB
 * together.
 * @throws TypeError saying which one is wrong, never what is in it.
 */
export function validateImages(images: unknown): void {
  const problem = imagesProblem(images)
  if (problem !== undefined) throw new TypeError(problem)
}

/**
 * Checks the files of an answer (MD-03): at most 10, with safe names, in base64, each 1 byte to 10 MiB, 50 MiB together.
 * @throws TypeError saying which one is wrong, never what is in it.
 */
export function validateReplyFiles(files: unknown): void {
  const problem = replyFilesProblem(files)
  if (problem !== undefined) throw new TypeError(problem)
}

/**
 * The name itself when it is safe for a file (MD-01).
 * @throws TypeError when it is not.
 */
export function safeFileName(name: unknown): string {
  if (isSafeFileName(name)) return name
  throw new TypeError(
    'the name is not safe for a file: no slash, backslash or control character, 1 to 255 characters',
  )
}
