import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'

/**
 * Makes one file of a guest beside this file, as an operator's own guest would bring it, with an official client in it
 * that `of`, a package of ours, has among its dependencies. Returns its path.
 */
export async function bundleGuest(
  outDir: string,
  { guest, library, of }: { readonly guest: string; readonly library: string; readonly of: string },
): Promise<string> {
  const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
  const { resolve } = createRequire(here(`../../packages/${of}/package.json`))
  await build({
    config: false,
    silent: true,
    entry: { guest: here(guest) },
    outDir,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    noExternal: [/.*/],
    minify: true,
    esbuildOptions: (options) => {
      options.conditions = ['@sandbox/source', 'module', 'node']
      options.alias = { [library]: resolve(library) }
    },
  })
  return join(outDir, 'guest.js')
}
