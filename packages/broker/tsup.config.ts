import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/index.ts', 'src/engine/index.ts', 'src/mcp/index.ts', 'src/otel/index.ts'],
  format: 'esm',
  target: 'es2023',
  sourcemap: true,
  clean: true,
})
