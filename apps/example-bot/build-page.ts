import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Builds the page, unless nothing that it is made of is newer: a start with a built page stays quick. */
const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

const config = at('vite.page.config.ts')
const page = at('src/surfaces/web/page')
const sources = readdirSync(page, { recursive: true, encoding: 'utf8' }).map((name) => `${page}/${name}`)
const inputs = [...sources, page, config, at('package.json'), at('../../pnpm-lock.yaml')]
const output = statSync(at('dist/page/index.html'), { throwIfNoEntry: false })?.mtimeMs ?? 0

if (inputs.some((path) => statSync(path).mtimeMs >= output)) {
  const { build } = await import('vite')
  await build({ configFile: config })
}
