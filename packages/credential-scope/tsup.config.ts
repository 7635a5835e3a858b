import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/index.ts', 'src/sources/index.ts'],
  format: 'esm',
  target: 'es2023',
  sourcemap: true,
  clean: true,
})
