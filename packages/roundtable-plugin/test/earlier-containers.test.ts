import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { PiSandboxRuntime } from '../src/pi-defaults.ts'
import { ownDir, userOptions } from './account.ts'
import { recordingLogger } from './messages.ts'
import { ann, kit } from './runtime-kit.ts'

const note = (runRoot: string) => join(runRoot, 'engine')

test('T51 a host on plain processes says that no engine answers for the containers of an earlier one, once, and goes on', async () => {
  await using own = await kit()
  writeFileSync(note(own.runtime.runRoot), '/nonexistent/docker.sock\n')
  expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ ok: true })
  const [line, ...others] = own.lines
  expect(others).toEqual([])
  expect(line).toMatchObject({ level: 'warn', message: expect.stringContaining('may still run') })
  expect(JSON.stringify(line)).toMatch(/sandbox-worker sweep --install [0-9a-f]{32}/)
  expect(existsSync(note(own.runtime.runRoot))).toBe(true)
})

test('a host that never had a container asks no engine', async () => {
  await using own = await kit()
  await own.runtime.start()
  expect(own.lines).toEqual([])
  expect(existsSync(note(own.runtime.runRoot))).toBe(false)
})

test.each(['pipe', 'directory', 'link'])(
  'a %s in place of the note blocks and leads nowhere',
  async (what) => {
    await using own = await kit()
    const path = note(own.runtime.runRoot)
    if (what === 'pipe') execFileSync('mkfifo', [path])
    else if (what === 'directory') mkdirSync(path)
    else execFileSync('ln', ['-s', '/etc/hostname', path])
    expect(await own.runtime.runTurn('fake:1', ann, 'hello')).toMatchObject({ ok: true })
    await own.runtime.dispose()
    await new SandboxRuntime({ ...own.options, driver: 'process' }).dispose()
  },
)

test('T51 a Pi host asks for the containers of an earlier one as well', async () => {
  using dir = ownDir()
  const { logger, lines } = recordingLogger()
  const partyDir = join(dir.path, 'p')
  await using runtime = new PiSandboxRuntime({
    partyDir,
    profiles: { default: {} },
    model: 'm',
    oauthToken: () => undefined,
    driver: 'process',
    logger,
    ...userOptions,
  })
  writeFileSync(note(partyDir), '/nonexistent/docker.sock\n')
  await runtime.check()
  expect(lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('may still run') }])
  expect(existsSync(note(partyDir))).toBe(true)
})
