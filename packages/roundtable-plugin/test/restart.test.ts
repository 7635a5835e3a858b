import { readdirSync, readFileSync } from 'node:fs'
import { chatText, scriptedUpstream } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { ownRoots, userOptions } from './account.ts'
import { startHost } from './killed-host.ts'
import { recordingLogger } from './messages.ts'
import { ann, runDirs } from './runtime-kit.ts'

/** Processes that were started with a path below `root` on their command line. */
function processesOf(root: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return line.includes(`${root}/`) && line.includes('--socket')
      } catch {
        return false
      }
    })
}

test.skipIf(process.platform !== 'linux')(
  'T51 a host that is killed in mid-turn and started again leaves nothing',
  async () => {
    using roots = ownRoots()
    let seen = () => {}
    const asked = new Promise<void>((done) => (seen = done))
    await using upstream = await scriptedUpstream(() => {
      seen()
      return new Promise(() => {})
    })
    const options = {
      runRoot: roots.runRoot,
      workspaceRoot: roots.workspaceRoot,
      model: 'm',
      modelUrl: `${upstream.url}/v1/chat/completions`,
      allowHttp: true,
      driver: 'process' as const,
      warm: false as const,
      ...userOptions,
    }
    const host = startHost({ ...options, apiKey: 'sk-test-0123456789abcdef' })
    await asked
    host.child.kill('SIGKILL')
    await host.ended
    expect(runDirs(roots.runRoot)).toHaveLength(1)

    upstream.script = () => chatText('hi')
    const { logger, lines } = recordingLogger()
    const runtime = new SandboxRuntime({ ...options, apiKey: () => 'sk-test-0123456789abcdef', logger })
    await runtime.start()
    expect(runDirs(roots.runRoot)).toEqual([])
    expect(processesOf(roots.runRoot)).toEqual([])
    expect(lines.map(({ message }) => message)).toEqual(['removed what was left of earlier turns'])
    expect(await runtime.runTurn('fake:1', ann, 'hello')).toEqual({ ok: true, text: 'hi' })
    await runtime.dispose()
    expect(readdirSync(roots.runRoot).filter((name) => name.endsWith('.lock'))).toEqual([])
  },
)

test('one host per run root: a second process is refused while the first runs', async () => {
  using roots = ownRoots()
  await using upstream = await scriptedUpstream(() => chatText('hi'))
  const options = {
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    model: 'm',
    modelUrl: `${upstream.url}/v1/chat/completions`,
    allowHttp: true,
    driver: 'process' as const,
    ...userOptions,
  }
  const key = 'sk-test-0123456789abcdef'
  const runtime = new SandboxRuntime({ ...options, apiKey: () => key })
  const refused = startHost({ ...options, apiKey: key })
  expect(await refused.ended).not.toEqual([0, null])
  await runtime.dispose()
  const allowed = startHost({ ...options, apiKey: key })
  expect(await allowed.ended).toEqual([0, null])
  expect(allowed.output()).toContain('"text":"hi"')
})
