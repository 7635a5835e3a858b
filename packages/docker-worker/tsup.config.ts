import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/index.ts', 'src/cli.ts', 'src/pi-content.ts'],
  format: 'esm',
  target: 'es2023',
  sourcemap: true,
  // The guest has a build of its own and may be in use.
  clean: ['!guest/**'],
})
