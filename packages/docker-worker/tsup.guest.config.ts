import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { defineConfig } from 'tsup'

const draft = `dist/.guest-${process.pid}`

export default defineConfig({
  entry: { sealed: 'src/guest/sealed/main.ts' },
  outDir: draft,
  format: 'esm',
  platform: 'node',
  target: 'node22',
  noExternal: [/.*/],
  minify: true,
  splitting: false,
  treeshake: true,
  esbuildOptions(options) {
    options.conditions = ['@sandbox/source', 'module', 'node']
    options.legalComments = 'none'
  },
  // A rename, so that a program that reads the guest right now finds a whole one.
  async onSuccess() {
    mkdirSync('dist/guest', { recursive: true })
    renameSync(`${draft}/sealed.js`, 'dist/guest/sealed.js')
    rmSync(draft, { recursive: true })
  },
})
