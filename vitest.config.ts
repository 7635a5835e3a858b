import { readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

const conditions = ['@sandbox/source', 'module', 'node', 'development|production']
const workspaces = ['packages', 'apps'].flatMap((top) => readdirSync(top).map((name) => `${top}/${name}`))

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    testTimeout: 20_000,
    hookTimeout: 60_000,
    coverage: {
      provider: 'v8',
      include: ['packages/*/src/**/*.ts'],
      reporter: ['text-summary', 'json-summary'],
    },
    projects: [...workspaces, '.'].map((root) => ({
      extends: true as const,
      root,
      test: {
        name: root === '.' ? 'repository' : root,
        include:
          root === '.'
            ? ['scripts/**/*.test.ts', 'test/**/*.test.ts']
            : ['src/**/*.test.ts', 'test/**/*.test.ts'],
      },
    })),
  },
})
