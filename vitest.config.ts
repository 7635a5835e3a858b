import { readdirSync } from 'node:fs'
import { defineConfig } from 'vitest/config'

const conditions = ['@sandbox/source', 'module', 'node', 'development|production']
const workspaces = ['packages', 'apps'].flatMap((top) => readdirSync(top).map((name) => `${top}/${name}`))

// A machine that counts names a file for the report; pnpm keeps --reporter for itself.
const report = process.env.SANDBOX_TEST_REPORT

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    reporters: report ? ['default', ['json', { outputFile: report }]] : ['default'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Most tests wait for sockets and processes: two at a time, also where there are two cores.
    maxWorkers: 2,
    coverage: {
      provider: 'v8',
      include: ['packages/*/src/**/*.ts'],
      reporter: ['text-summary', 'json-summary'],
    },
    projects: [
      ...[...workspaces, '.'].map((root) => ({
        extends: true as const,
        root,
        test: {
          name: root === '.' ? 'repository' : root,
          include:
            root === '.'
              ? ['scripts/**/*.test.ts', 'test/**/*.test.ts']
              : ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['**/node_modules/**', '**/*.{docker,browser}.test.ts'],
        },
      })),
      // Containers are the heavy part: their files run one after another, apart from all others.
      {
        extends: true as const,
        root: '.',
        test: {
          name: 'docker',
          include: [
            ...workspaces.map((root) => `${root}/{src,test}/**/*.docker.test.ts`),
            'test/**/*.docker.test.ts',
          ],
          maxWorkers: 1,
          sequence: { groupOrder: 1 },
        },
      },
      // A browser and what it looks at take the whole machine for a while.
      {
        extends: true as const,
        root: '.',
        test: {
          name: 'browser',
          include: workspaces.map((root) => `${root}/test/**/*.browser.test.ts`),
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
