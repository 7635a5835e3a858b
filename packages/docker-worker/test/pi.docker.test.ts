import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Posture } from '@sandbox/protocol'
import { dockerGate, tempDir } from '@sandbox/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from '../src/command/run-command.ts'
import { createDockerDriver } from '../src/host/docker-driver.ts'
import type { Driver, Worker } from '../src/host/driver.ts'
import { buildImage } from '../src/host/image/build-image.ts'
import { openPiHost, type PiHost, type PiHostOptions } from '../src/testing/pi-host.ts'
import { ENGINE } from '../src/testing/tiny-image.ts'
import { testUser } from '../src/testing/worker-bench.ts'

const IMAGE = `sandbox-test-pi:${process.versions.bun ? 'bun' : 'node'}`
/** A program for x86-64: forks, ends, and its child writes a byte to stdout and does the same. */
function chainProgram(): Buffer {
  const head = Buffer.alloc(120)
  head.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  head.set([2, 0, 62, 0, 1], 16)
  head.writeBigUInt64LE(0x400078n, 24)
  head.writeBigUInt64LE(64n, 32)
  head.set([64, 0, 56, 0, 1], 52)
  head.set([1, 0, 0, 0, 5], 64)
  for (const at of [80, 88]) head.writeBigUInt64LE(0x400000n, at)
  for (const at of [96, 104]) head.writeBigUInt64LE(0xa4n, at)
  head.writeBigUInt64LE(0x1000n, 112)
  const code = [
    ...[0xb8, 57, 0, 0, 0, 0x0f, 0x05, 0x85, 0xc0, 0x7f, 24], // fork; jg to the end
    ...[0xb8, 1, 0, 0, 0, 0xbf, 1, 0, 0, 0, 0xbe, 0, 0, 0x40, 0, 0xba, 1, 0, 0, 0, 0x0f, 0x05], // write(1, …, 1)
    ...[0xeb, 0xdd], // from the beginning
    ...[0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05], // exit(0)
  ]
  return Buffer.concat([head, Buffer.from(code)])
}

/** Content with the agent's files, a skill, and a tool that leaves a process behind. */
const CONTENT = {
  'index.mjs': `
    import { spawn } from 'node:child_process'
    import { existsSync, fstatSync, openSync, writeFileSync } from 'node:fs'
    const tick = "setInterval(() => require('fs').appendFileSync('/workspace/ticks', '.'), 5)"
    const leave = (pi) => pi.registerTool({
      name: 'leave',
      label: 'leave',
      description: 'Leaves a process behind',
      parameters: { type: 'object', properties: {} },
      async execute() {
        spawn(process.execPath, ['-e', tick], { detached: true, stdio: 'ignore' }).unref()
        while (!existsSync('/workspace/ticks')) await new Promise((resolve) => setTimeout(resolve, 5))
        return { content: [{ type: 'text', text: 'left' }], details: undefined }
      },
    })
    const chain = (pi) => pi.registerTool({
      name: 'chain',
      label: 'chain',
      description: 'Leaves a process behind that forks and ends, again and again',
      parameters: { type: 'object', properties: {} },
      async execute() {
        writeFileSync('/workspace/chain', Buffer.from('${chainProgram().toString('base64')}', 'base64'), { mode: 0o700 })
        const ticks = openSync('/workspace/ticks', 'a')
        spawn('/workspace/chain', { detached: true, stdio: ['ignore', ticks, 'ignore'] }).unref()
        while (fstatSync(ticks).size < 100) await new Promise((resolve) => setTimeout(resolve, 5))
        return { content: [{ type: 'text', text: 'left' }], details: undefined }
      },
    })
    export const workerContent = (profile) => ({
      prompt: 'You are ' + profile,
      skillsDir: 'skills',
      toolNames: ['read', 'write', 'bash', 'leave', 'chain'],
      extensions: [leave, chain],
    })`,
  'skills/sailing/SKILL.md': '---\nname: sailing\ndescription: How to sail\n---\nMind the boom.',
}

describe.skipIf(!dockerGate())('the real Pi agent in a container', () => {
  let driver: Driver
  beforeAll(async () => {
    using content = tempDir()
    for (const [name, text] of Object.entries(CONTENT)) {
      mkdirSync(join(content.path, name, '..'), { recursive: true })
      writeFileSync(join(content.path, name), text)
    }
    const options = { guest: 'pi', tag: IMAGE, engineSocket: ENGINE, content: content.path } as const
    const first = await buildImage(options)
    expect(await buildImage(options)).toEqual({ ...first, built: false })
    driver = createDockerDriver({
      guest: 'pi',
      image: IMAGE,
      engineSocket: ENGINE,
      installId: `test-pi-${randomBytes(4).toString('hex')}`,
      user: testUser(),
    })
    await driver.check()
  })
  afterAll(() => driver?.[Symbol.asyncDispose]())

  async function start(host: PiHost): Promise<Worker> {
    return driver.start({
      workerId: randomBytes(8).toString('hex'),
      channelHash: 'c'.repeat(64),
      epoch: 'test',
      runDir: host.runDir,
      workspaceDir: host.workspace,
    })
  }

  async function running(options: PiHostOptions) {
    const host = await openPiHost(options)
    const worker = await start(host)
    return {
      host,
      worker,
      async [Symbol.asyncDispose]() {
        await worker.remove()
        await host[Symbol.asyncDispose]()
      },
    }
  }

  test('a text turn, a streamed one and a tool loop; its walls stand', async () => {
    const said = 'The tide turns at noon. '.repeat(4).trim()
    await using place = await running({
      tools: [
        {
          name: 'tide',
          description: 'The tide of a place',
          parameters: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
        },
      ],
      model: (_, index) =>
        [['Ahoy.'], { parts: [said], everyMs: 60 }, [{ tool: 'tide', input: { place: 'Kiel' } }], ['High.']][
          index
        ] ?? [],
      tool: () => ({ ok: true, text: 'high water 12:04' }),
    })
    const { host } = place
    const { posture } = (await host.hello()) as { posture: Posture }
    expect(driver.verify(posture)).toEqual([])
    expect(await host.play()).toEqual({ ok: true, text: 'Ahoy.', files: [] })
    expect(await host.play()).toEqual({ ok: true, text: said, files: [] })
    const grown = host.progress.filter(({ turnId }) => turnId === host.progress.at(-1)?.turnId)
    expect(grown.length).toBeGreaterThan(1)
    expect(said.startsWith(grown.map(({ text }) => text).join(''))).toBe(true)
    expect(await host.play({ text: 'And now?' })).toMatchObject({ ok: true, text: 'High.' })
    expect(host.toolCalls.map(({ path, body }) => [path, body])).toEqual([
      ['/tools/tide', { input: { place: 'Kiel' } }],
    ])
    expect(JSON.stringify(host.modelCalls.at(-1)?.body.messages)).toContain('high water 12:04')
    expect(JSON.stringify(host.modelCalls[0]?.body.system)).toContain('You are default')
  })

  test('T65 doctor knows the image of a Pi worker and shows its walls', async () => {
    const lines: string[] = []
    const code = await runCommand(['doctor', '--image', IMAGE, '--json'], {
      env: { DOCKER_HOST: `unix://${ENGINE}` },
      signal: new AbortController().signal,
      out: (line) => lines.push(line),
      progress: () => {},
      write: () => {},
    })
    const { ok, findings } = JSON.parse(lines.join('\n'))
    expect(findings.filter((row: { ok: boolean }) => !row.ok)).toEqual([])
    expect([code, ok]).toEqual([0, true])
    expect(findings).toContainEqual(
      expect.objectContaining({
        id: 'network',
        expected: expect.stringContaining('loopback TCP sockets'),
      }),
    )
  })

  test('a worker that is killed in mid-turn leaves a conversation that the next one continues', async () => {
    await using place = await running({
      model: (_, index) => [['First answer.'], 'hang' as const, ['Third answer.']][index] ?? [],
    })
    const { host, worker } = place
    await host.play({ text: 'first question' })
    void host.play({ text: 'second question' })
    while (host.modelCalls.length < 2) await new Promise((resolve) => setTimeout(resolve, 20))
    await worker.remove()
    host.expectWorker()
    const next = await start(host)
    await using _end = { [Symbol.asyncDispose]: () => next.remove() }
    expect(await host.play({ text: 'third question' })).toMatchObject({ ok: true, text: 'Third answer.' })
    const told = JSON.stringify(host.modelCalls.at(-1)?.body.messages)
    for (const text of ['first question', 'First answer.', 'third question']) expect(told).toContain(text)
    const [file, ...more] = readdirSync(join(host.workspace, 'sessions'))
    expect(more).toEqual([])
    const lines = readFileSync(join(host.workspace, 'sessions', file ?? ''), 'utf8')
      .trim()
      .split('\n')
    for (const line of lines) expect(() => JSON.parse(line)).not.toThrow()
  })

  test('W-01 what a turn leaves running in the container is gone when its outcome arrives [worker:pi-turns-apart]', async () => {
    await using place = await running({
      model: (_, index) => [[{ tool: 'leave', input: {} }], ['Left.']][index] ?? [],
    })
    const { host } = place
    expect(await host.play()).toMatchObject({ ok: true, text: 'Left.' })
    const ticks = () => statSync(join(host.workspace, 'ticks')).size
    const before = ticks()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(ticks()).toBe(before)
  })

  test.skipIf(process.arch !== 'x64')(
    'W-01 nor does what forks and ends too fast to be caught go on [worker:pi-turns-apart]',
    async () => {
      await using place = await running({
        model: (_, index) => [[{ tool: 'chain', input: {} }], ['Left.']][index] ?? [],
      })
      const { host } = place
      expect(await host.play()).toMatchObject({ ok: true, text: 'Left.' })
      const ticks = () => statSync(join(host.workspace, 'ticks')).size
      const before = ticks()
      await new Promise((resolve) => setTimeout(resolve, 100))
      expect(ticks()).toBe(before)
    },
  )

  test('there is no shell: the agent’s own tool for it fails in words', async () => {
    await using place = await running({
      model: (_, index) => [[{ tool: 'bash', input: { command: 'id' } }], ['No shell.']][index] ?? [],
    })
    expect(await place.host.play()).toMatchObject({ ok: true, text: 'No shell.' })
    expect(JSON.stringify(place.host.modelCalls.at(-1)?.body.messages)).toContain('"is_error":true')
  })

  test('attachments, a skill, reply files: read and written inside', async () => {
    await using place = await running({
      model: (_, index) =>
        [
          [
            { tool: 'read_attachment', input: { name: 'log.txt' } },
            { tool: 'read_skill', input: { skill: 'sailing' } },
          ],
          [{ tool: 'write', input: { path: 'outbox/t-files/plan.txt', content: 'Mind the boom.' } }],
          ['Here is the plan.'],
        ][index] ?? [],
    })
    const { host } = place
    const folder = join(host.workspace, 'attachments')
    mkdirSync(folder)
    writeFileSync(join(folder, 'log.txt'), 'Wind force 6')
    chmodSync(folder, 0o755)
    if (process.getuid?.() === 0) chownSync(folder, testUser().uid, testUser().gid)
    const outcome = await host.play({ turnId: 't-files', attachments: [{ name: 'log.txt', bytes: 12 }] })
    const data = Buffer.from('Mind the boom.').toString('base64')
    expect(outcome).toEqual({ ok: true, text: 'Here is the plan.', files: [{ name: 'plan.txt', data }] })
    const told = JSON.stringify(host.modelCalls.at(-1)?.body.messages)
    for (const text of ['Wind force 6', 'Mind the boom.', 'log.txt']) expect(told).toContain(text)
  })
})
