import { readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** Builds the page of the example bot, unless nothing that it is made of is newer: a start stays quick. */
const root = fileURLToPath(new URL('..', import.meta.url))
const bot = `${root}apps/example-bot/`
const config = `${bot}vite.page.config.ts`
const page = `${bot}src/surfaces/web/page`

const sources = readdirSync(page, { recursive: true, encoding: 'utf8' }).map((name) => `${page}/${name}`)
const inputs = [...sources, page, config, `${bot}package.json`, `${root}pnpm-lock.yaml`]
const output = statSync(`${bot}dist/page/index.html`, { throwIfNoEntry: false })?.mtimeMs ?? 0

if (inputs.some((path) => statSync(path).mtimeMs >= output)) {
  const { build } = await import('vite')
  await build({ configFile: config })
}
