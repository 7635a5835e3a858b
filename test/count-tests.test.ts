import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const script = join(import.meta.dirname, '../.ci/count-tests.mjs')

function count(
  files: Record<string, { status?: string; tests: string[] }> | undefined,
  ...expected: string[]
): string {
  const dir = mkdtempSync(join(tmpdir(), 'count-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  const path = join(dir, 'report.json')
  const testResults = Object.entries(files ?? {}).map(([name, { status = 'passed', tests }]) => ({
    name: `/src/${name}`,
    status,
    assertionResults: tests.map((one) => ({ status: one })),
  }))
  if (files !== undefined) writeFileSync(path, JSON.stringify({ testResults }))
  return execFileSync(process.execPath, [script, path, ...expected], { encoding: 'utf8' }).trim()
}

const docker = { 'a.docker.test.ts': { tests: ['passed', 'passed'] } }

test('decision 40: tests are counted, and a run is good when its Docker tests ran', () => {
  expect(count({ ...docker, 'b.test.ts': { tests: ['passed', 'skipped'] } })).toBe('3 0')
})

test('a failed test is counted once', () => {
  expect(count({ ...docker, 'b.test.ts': { status: 'failed', tests: ['failed', 'passed'] } })).toBe('3 1')
})

test.each<[string, Parameters<typeof count>[0], string]>([
  ['no report', undefined, '0 0 there is no report of its tests'],
  ['no Docker test', { 'b.test.ts': { tests: ['passed'] } }, '1 0 no Docker test ran'],
  [
    'a skipped Docker test',
    { 'a.docker.test.ts': { tests: ['passed', 'skipped'] } },
    '1 0 1 Docker tests were skipped',
  ],
  ['all Docker tests skipped', { 'a.docker.test.ts': { tests: ['pending'] } }, '0 0 no Docker test ran'],
  [
    'a file that did not load',
    { ...docker, 'b.test.ts': { status: 'failed', tests: [] } },
    '2 0 1 test files failed outside their tests',
  ],
])('%s is a problem', (_, files, expected) => {
  expect(count(files)).toBe(expected)
})

test('a file for a root shell may be skipped elsewhere, and only elsewhere', () => {
  const files = { ...docker, 'c.root.docker.test.ts': { tests: ['skipped'] } }
  expect(count(files)).toBe('2 0')
  expect(count(files, 'docker-as-root')).toBe('2 0 1 Docker tests were skipped')
})
