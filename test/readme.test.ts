import { rmSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { readmeBlocks, runBlock } from './support/readme.ts'

const isRoot = process.getuid?.() === 0

afterAll(() => {
  for (const path of [
    '/tmp/readme-bot-run',
    '/tmp/readme-bot-work',
    '/tmp/readme-worker.sock',
    '/tmp/readme-pi.sock',
  ]) {
    rmSync(path, { recursive: true, force: true })
  }
})

test('every published package has a block in the README', () => {
  expect([...readmeBlocks().keys()]).toEqual([
    '@sandbox/protocol',
    '@sandbox/credential-scope',
    '@sandbox/broker',
    '@sandbox/pi-broker',
    '@sandbox/docker-worker',
    '@sandbox/roundtable-plugin',
  ])
})

test('the block of protocol prints the version and the table', async () => {
  const out = await runBlock('@sandbox/protocol')
  expect(out).toContain('version 1 false')
  expect(out).toContain('POST /model turn 262144')
})

test('the block of credential-scope prints no key', async () => {
  const out = await runBlock('@sandbox/credential-scope', { ALPHA_KEY: 'sk-readme-0123456789' })
  expect(out).toMatch(/^\[secret\] [0-9a-f]{8,}\n$/)
})

test('the block of broker opens and closes its socket', async () => {
  expect(await runBlock('@sandbox/broker')).toBe('')
})

test('the block of pi-broker opens and closes its socket', async () => {
  expect(await runBlock('@sandbox/pi-broker')).toBe('starting\n')
})

// Workers never run as root: there the example would need a uid and a gid.
test.skipIf(isRoot)('the block of roundtable-plugin answers a speaker without a key in words', async () => {
  expect(await runBlock('@sandbox/roundtable-plugin')).toMatch(/^false .*key/i)
})
