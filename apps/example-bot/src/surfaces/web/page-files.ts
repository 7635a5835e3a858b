import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { BotError } from '../../errors.ts'

/** A file of the page, ready to be sent. */
export interface PageFile {
  readonly path: string
  readonly type: string
  readonly body: Uint8Array<ArrayBuffer>
}

const NAMES: readonly (readonly [path: string, name: string, type: string])[] = [
  ['/', 'index.html', 'text/html; charset=utf-8'],
  ['/page.css', 'page.css', 'text/css; charset=utf-8'],
  ['/page.js', 'page.js', 'text/javascript; charset=utf-8'],
  ['/icon.svg', 'icon.svg', 'image/svg+xml'],
]

/**
 * Reads the page as `build:page` made it, below this package: these files and no others are ever served.
 *
 * @throws BotError `page` when it has not been built.
 */
export function pageFiles(): readonly PageFile[] {
  const dir = join(packageDir(dirname(fileURLToPath(import.meta.url))), 'dist', 'page')
  return NAMES.map(([path, name, type]) => {
    try {
      return { path, type, body: new Uint8Array(readFileSync(join(dir, name))) }
    } catch (cause) {
      throw new BotError('page', `The page is not built (${join(dir, name)}): run pnpm run build:page.`, {
        cause,
      })
    }
  })
}

/** The directory of this package: from sources and from a bundle alike. */
function packageDir(from: string): string {
  const parent = dirname(from)
  return existsSync(join(from, 'package.json')) || parent === from ? from : packageDir(parent)
}
