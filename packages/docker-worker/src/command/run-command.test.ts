import { describe, expect, test } from 'vitest'
import { scriptedEngine } from '../testing/scripted-engine.ts'
import { runCommand } from './run-command.ts'

async function run(args: string[], env = {}): Promise<{ code: number; out: string; progress: string }> {
  const out: string[] = []
  const progress: string[] = []
  const code = await runCommand(args, {
    env,
    signal: new AbortController().signal,
    out: (line) => out.push(line),
    progress: (line) => progress.push(line),
    write: () => {},
  })
  return { code, out: out.join('\n'), progress: progress.join('\n') }
}

describe('sandbox-worker', () => {
  test.each([[['--help']], [['help']], [['build', '-h']]])('%j explains every command', async (args) => {
    const { code, out } = await run(args)
    expect(code).toBe(0)
    for (const word of ['build', 'doctor', 'run', 'ps', 'sweep', '--tag', '--json', 'Exit codes'])
      expect(out).toContain(word)
  })

  const ALL = ['build', 'doctor', 'ps', 'run', 'sweep']

  test.each(ALL)('%s --help explains it, and nothing is begun', async (name) => {
    await using engine = await scriptedEngine(() => undefined)
    const { code, out } = await run([name, '--help'], { DOCKER_HOST: `unix://${engine.path}` })
    expect([code, engine.calls]).toEqual([0, []])
    expect(out).toMatch(new RegExp(`^${name}\\b`, 'm'))
  })

  /** Words without which a command means nothing. */
  const MORE: Readonly<Record<string, readonly string[]>> = {
    run: ['--image', 'img:1', '--run-dir', '/srv/run', '--', 'program'],
    sweep: ['--install', 'install-1'],
  }

  test.each(ALL.filter((name) => name !== 'doctor'))(
    '%s without an engine: the error as text and as JSON, and its exit code',
    async (name) => {
      const words = [name, '--socket', '/nonexistent/docker.sock', ...(MORE[name] ?? [])]
      const code = name === 'run' ? 125 : 1
      const text = await run(words)
      expect(text).toMatchObject({ code, out: '' })
      expect(text.progress).toMatch(
        new RegExp(
          `^sandbox-worker ${name}: There is no engine at .*DOCKER_HOST.* \\(engine_unreachable\\)$`,
        ),
      )
      const json = await run([name, '--json', ...words.slice(1)])
      expect(json.code).toBe(code)
      expect(JSON.parse(json.out)).toEqual({
        error: { code: 'engine_unreachable', message: expect.stringContaining('/nonexistent/docker.sock') },
      })
    },
  )

  test.each([
    ['--timeout', '0', '--timeout has to be a whole number'],
    ['--timeout', 'soon', '--timeout has to be a whole number'],
    ['--memory', '63', '--memory has to be a whole number'],
    ['--pids', '7', '--pids has to be a whole number'],
    ['--user', '0:0', 'a worker never runs as root'],
    ['--user', 'root', '--user has to be two numbers'],
    ['--install', 'short', 'installId has to be'],
    ['--image', '-x', ''],
    ['--image', 'a\u0000b', '--image is not the name of an image'],
  ])('run with %s %j is wrong usage', async (name, value, problem) => {
    await using engine = await scriptedEngine(() => undefined)
    const [image, runDir] = ['img:1', '/srv/run']
    const given = { '--image': image, '--run-dir': runDir, [name]: value }
    const words = Object.entries(given).flatMap(([option, word]) => [`${option}=${word}`])
    const { code, progress } = await run(['run', '--socket', engine.path, ...words, '--', 'program'])
    expect(progress).toContain(problem)
    expect([code, engine.calls.filter((call) => call.startsWith('POST'))]).toEqual([2, []])
  })

  test.each([
    [[], 'No command given.'],
    [['fly'], 'There is no command "fly".'],
    [['build', 'now'], 'build takes no further words.'],
    [['run', '--image', 'x', '--run-dir', '/x'], 'run needs a program'],
    [['run', '--run-dir', '/x', '--', 'x'], 'run needs --image NAME.'],
    [['run', 'x', '--image', 'x', '--run-dir', '/x', '--', 'x'], 'behind "--"'],
    [['ps', '--', 'x'], 'ps takes no further words.'],
    [['constructor'], 'There is no command "constructor".'],
    [['build', '--install', 'x'], 'build takes no --install.'],
    [['sweep'], 'sweep needs --install ID.'],
    [['sweep', '--install', 'a b'], 'installId has to be'],
    [['doctor', '--socket', 'relative'], '--socket has to be an absolute path'],
    [['doctor', '--engine-runtime', 'sysbox'], '--engine-runtime has to be "runc", "runsc" or "kata"'],
    [['build', '--fly'], '--fly'],
    [['build', '--content', '/x'], '--content goes with --pi.'],
    [['doctor', '--pi'], 'doctor takes no --pi.'],
    [['doctor', '--user', '4294967295:1'], 'user.uid has to be a number of an account, 2147483647 at most'],
    [['build', '--tag', 'a:b:c'], 'tag has to be a name in lower case, with at most one version'],
    [['build', '--tag', 'Worker'], 'tag has to be a name in lower case'],
    [['build', '--tag', 'a:'], 'tag has to be a name in lower case'],
  ])('%j is wrong usage: exit code 2', async (args, problem) => {
    await using engine = await scriptedEngine(() => undefined)
    const { code, out, progress } = await run(args, { DOCKER_HOST: `unix://${engine.path}` })
    expect(code).toBe(2)
    expect(progress).toContain(problem)
    expect(out).toBe('')
  })

  test('a remote engine is refused, as text and as JSON', async () => {
    const env = { DOCKER_HOST: 'tcp://10.0.0.1:2375' }
    expect(await run(['doctor'], env)).toMatchObject({
      code: 1,
      progress: expect.stringContaining('engine_remote'),
    })
    const { code, out } = await run(['sweep', '--install', 'install-1', '--json'], env)
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({ error: { code: 'engine_remote' } })
  })

  test('doctor names what is wrong with an engine, and how to mend it', async () => {
    const info = {
      OperatingSystem: 'Debian',
      OSType: 'linux',
      CgroupDriver: 'none',
      SecurityOptions: ['name=seccomp,profile=default', 'name=rootless'],
    }
    await using engine = await scriptedEngine((call) =>
      call === 'GET /info' ? { status: 200, body: info } : undefined,
    )
    const { code, out } = await run(['doctor', '--image', 'img:1', '--socket', engine.path])
    expect(code).toBe(1)
    expect(out).toMatch(/^ok +engine/m)
    expect(out).toMatch(/^ok +seccomp/m)
    expect(out).toMatch(/^FAIL +same-ids .*rootless.*\n +Use an engine that runs as root/m)
    expect(out).toMatch(/^FAIL +limits .*CgroupDriver.*PidsLimit/m)
    expect(out).toMatch(/^FAIL +image .*\n.*"sandbox-worker build --tag img:1"/m)
  })

  test('doctor without an engine says so', async () => {
    const { code, out } = await run(['doctor', '--socket', '/nonexistent/docker.sock', '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      ok: false,
      findings: [{ id: 'engine', code: 'engine_unreachable' }],
    })
  })

  test('sweep says what it removed', async () => {
    const body = [{ Id: 'c1', Labels: { 'sandbox.install': 'install-1', 'sandbox.worker': 'w1' } }]
    await using engine = await scriptedEngine((call) => {
      if (call === 'GET /containers/json') return { status: 200, body }
      return call === 'DELETE /containers/c1' ? { status: 204 } : undefined
    })
    const args = ['sweep', '--install', 'install-1', '--socket', engine.path]
    expect(await run(args)).toMatchObject({ code: 0, out: 'removed 1\n  w1' })
    expect(await run([...args, '--json'])).toMatchObject({ code: 0, out: '{"removed":["w1"]}' })
  })
})
