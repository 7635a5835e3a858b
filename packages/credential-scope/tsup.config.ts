import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/index.ts', 'src/sources/index.ts'],
  format: 'esm',
  target: 'es2023',
  sourcemap: true,
  clean: true,
  // keys.schema.json and receipt.schema.json, for editors and audit tools.
  publicDir: 'schemas',
})
