import { readFileSync } from 'node:fs'

/** Reads a text of the kernel; an empty one when it cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Lines that are not empty. */
export function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '')
}
