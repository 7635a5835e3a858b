import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { sourceFlags } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { freshStateDir } from './run-demo.ts'

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))

/** Runs the demo as a script does: messages on stdin, then its end. */
async function script(messages: readonly string[]) {
  const stateDir = freshStateDir()
  try {
    const args = [...sourceFlags, MAIN, '--json', '--driver', 'process', '--state', stateDir]
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] })
    child.stdin.end(messages.join('\n'))
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit'),
    ])
    const lines = out
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
    return { code, err, of: (type: string) => lines.filter((line) => line.type === type), lines }
  } finally {
    rmSync(stateDir, { recursive: true, force: true })
  }
}

test('--json answers what stdin says and ends: stdout is JSON alone, two channels are paid by two keys', async () => {
  const { code, err, of, lines } = await script([
    'hello',
    '{"channel": "demo:team", "speaker": "u-ann", "text": "hello, too"}',
    '{"channel": "demo:team", "speaker": "u-ben", "text": "hello, as well"}',
  ])
  expect([code, lines.length]).toEqual([0, 9])
  expect(
    of('reply')
      .map(({ channel }) => channel)
      .sort(),
  ).toEqual(['demo:alpha', 'demo:team', 'demo:team'])
  const paid = of('turn').map(({ payments: [payment] }) => payment.rule)
  expect(paid.sort()).toEqual([
    'channel demo:alpha',
    'channel demo:team, speaker u-ann',
    'channel demo:team, speaker u-ben',
  ])
  expect(new Set(of('turn').map(({ payments: [payment] }) => payment.fingerprint)).size).toBe(3)
  expect(err).toMatch(/page +http:\/\/127\.0\.0\.1/)
  expect(err).toContain('Stopped.')
})

test('--json ends with 1 when a turn failed or a line was no message', async () => {
  const { code, of } = await script([
    '{"channel": "demo:nokey", "text": "hello"}',
    '{"channel": "demo:none", "text": "hello"}',
  ])
  expect(code).toBe(1)
  expect(of('turn')).toMatchObject([{ ok: false, category: 'credential', payments: [] }])
  expect(of('error')).toEqual([{ type: 'error', line: 2, message: 'There is no such channel.' }])
})
