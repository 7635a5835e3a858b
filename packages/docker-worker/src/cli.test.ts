import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { sourceFlags } from '@sandbox/testing'
import { expect, test } from 'vitest'

const CLI = fileURLToPath(new URL('./cli.ts', import.meta.url))

async function cli(args: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(process.execPath, [...sourceFlags, CLI, ...args], {
    env: {},
    stdio: 'pipe',
  })
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk) => (text.out += String(chunk)))
  child.stderr.on('data', (chunk) => (text.err += String(chunk)))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, ...text }
}

test('the program: result on stdout, progress and problems on stderr, exit codes as documented', async () => {
  const [help, wrong, failed] = await Promise.all([
    cli(['--help']),
    cli(['fly']),
    cli(['ps', '--socket', '/nonexistent/docker.sock']),
  ])
  expect(help).toMatchObject({ code: 0, err: '' })
  expect(help.out).toContain('sandbox-worker <command>')
  expect(wrong).toMatchObject({ code: 2, out: '' })
  expect(wrong.err).toBe('There is no command "fly".\nTry: sandbox-worker --help\n')
  expect(failed).toMatchObject({ code: 1, out: '' })
  expect(failed.err).toContain('(engine_unreachable)')
}, 60_000)
