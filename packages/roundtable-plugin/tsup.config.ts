import { defineConfig } from 'tsup'

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/runtime/index.ts',
    'src/host/index.ts',
    'src/attachments/index.ts',
    'src/delegation/index.ts',
    'src/prechecks/index.ts',
    'src/safe-fetch/index.ts',
  ],
  format: 'esm',
  target: 'es2023',
  sourcemap: true,
  clean: true,
})
