import { readFileSync } from 'node:fs'

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
  ['/view.js', 'view.js', 'text/javascript; charset=utf-8'],
  ['/feed.js', 'feed.js', 'text/javascript; charset=utf-8'],
  ['/icon.svg', 'icon.svg', 'image/svg+xml'],
]

/** Reads the page from the directory beside this file: these files and no others are ever served. */
export function pageFiles(): readonly PageFile[] {
  return NAMES.map(([path, name, type]) => ({
    path,
    type,
    body: new Uint8Array(readFileSync(new URL(`./page/${name}`, import.meta.url))),
  }))
}
