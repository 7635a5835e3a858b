/**
 * A loader for sources that run as they are on Node 22: it knows no `using`, which the build turns into what it knows.
 * With the same tool as the build.
 */
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const tsup = createRequire(import.meta.url).resolve('tsup')
const { transform } = createRequire(tsup)('esbuild')

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context)
  const text = await readFile(fileURLToPath(url), 'utf8')
  const { code } = await transform(text, { loader: 'ts', format: 'esm', target: 'node22', sourcefile: url })
  return { format: 'module', source: code, shortCircuit: true }
}
