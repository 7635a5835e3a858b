import { existsSync } from 'node:fs'
import { realpath, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { DriverError } from '../../errors.ts'

/** The sealed guest of this package. */
export function guestBundle(): string {
  return guestFile('sealed.js')
}

/** A guest program of this package: beside the built code, or below `dist` of a checkout. */
export function guestFile(name: string): string {
  const places = [`./guest/${name}`, `../guest/${name}`, `../../../dist/guest/${name}`]
  const paths = places.map((place) => fileURLToPath(new URL(place, import.meta.url)))
  return paths.find((path) => existsSync(path)) ?? (paths.at(-1) as string)
}

/** Checks that the guest program is there. Throws `bundle_missing`. */
export async function requireBundle(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isFile()) return realpath(path)
  const text = `The guest program ${path} is not built. In a checkout: "pnpm run build:guest".`
  throw new DriverError('bundle_missing', text)
}
