import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { buildImage, createDockerDriver } from '@sandbox/docker-worker'
import { SEALED_PLACEHOLDER } from '@sandbox/protocol'
import { SandboxRuntime } from '@sandbox/roundtable-plugin'
import {
  canary,
  chatText,
  chatToolCalls,
  dockerGate,
  dockerSocket,
  findSecret,
  scriptedUpstream,
  tempDir,
  type UpstreamScript,
} from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { bundleGuest } from './support/bundle-guest.ts'
import { EngineView } from './support/engine-view.ts'
import { type RecordedSocket, recordSocket } from './support/recorded-socket.ts'

const ENGINE = dockerSocket() ?? '/nonexistent'
const IMAGE = `sandbox-test-openai:${process.versions.bun ? 'bun' : 'node'}`
const isRoot = process.geteuid?.() === 0
const account = isRoot
  ? { uid: 64_202, gid: 64_202 }
  : { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1 }

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  })}\n\n`
const fragments = (index: number, zone: string) => [
  chunk({
    tool_calls: [
      { index, id: `call_${index}`, type: 'function', function: { name: 'clock', arguments: '' } },
    ],
  }),
  ...[...JSON.stringify({ zone })].map((text) =>
    chunk({ tool_calls: [{ index, function: { arguments: text } }] }),
  ),
]
const opened = chunk({ role: 'assistant', content: null })
const twoCalls = chatToolCalls([
  { name: 'clock', input: { zone: 'UTC' } },
  { name: 'clock', input: { zone: 'Asia/Tokyo' } },
])

/** What the model says, call by call. */
const SAYS: readonly (object | readonly string[])[] = [
  chatText('It is late.'),
  chatToolCalls([{ name: 'clock', input: { zone: 'UTC' } }]),
  chatText('It is noon.'),
  twoCalls,
  [
    ...['Grüße ', '日本', '語 🎉'].map((content) => chunk({ content })),
    chunk({}, 'stop'),
    'data: [DONE]\n\n',
  ],
  [
    opened,
    ...fragments(0, 'UTC'),
    ...fragments(1, 'Asia/Tokyo'),
    chunk({}, 'tool_calls'),
    'data: [DONE]\n\n',
  ],
]

describe.skipIf(!dockerGate())('issue 4: the official openai client in a sealed container', () => {
  beforeAll(async () => {
    using dir = tempDir()
    const bundle = await bundleGuest(dir.path, {
      guest: './openai-guest.mjs',
      library: 'openai',
      of: 'broker',
    })
    await buildImage({ tag: IMAGE, engineSocket: ENGINE, bundle })
  })

  test('text, tool calls, parallel tool calls and a stream through the loopback forwarder; the key stays outside [secret:not-in-guest-bytes] [container:no-network] [call:host-chooses-model]', async () => {
    using dir = tempDir()
    if (isRoot) chownSync(dir.path, account.uid, account.gid)
    const away = join(dir.path, 'a')
    mkdirSync(away)
    const key = canary()
    let calls = 0
    const script: UpstreamScript = (_, response) => {
      const says = SAYS[calls++] ?? chatText('more than was asked for')
      if (!Array.isArray(says)) return says
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (const event of says) response.write(event)
      response.end()
      return undefined
    }
    await using upstream = await scriptedUpstream(script)
    const sockets: RecordedSocket[] = []
    let installId = ''
    await using runtime = disposable(
      new SandboxRuntime({
        runRoot: join(dir.path, 'r'),
        workspaceRoot: join(dir.path, 'w'),
        model: 'of-the-host',
        modelUrl: `${upstream.url}/v1/chat/completions`,
        allowHttp: true,
        warm: false,
        apiKey: () => key,
        ...(isRoot ? account : {}),
        driver: ({ installId: id, user }) => {
          installId = id
          const options = {
            image: IMAGE,
            engineSocket: ENGINE,
            installId,
            user,
            network: 'loopback',
          } as const
          const driver = createDockerDriver(options)
          const start = driver.start.bind(driver)
          driver.start = async (spec, signal) => {
            sockets.push(await recordSocket(join(spec.runDir, 'worker.sock'), away, account))
            return start(spec, signal)
          }
          return driver
        },
      }),
    )
    const reply = await runtime.runTurn('test:openai', { id: 'u-ann', name: 'Ann' }, 'go')
    for (const socket of sockets) await socket[Symbol.asyncDispose]()
    expect(reply, JSON.stringify(reply)).toMatchObject({ ok: true })
    const clocks = ['UTC', 'Asia/Tokyo'].map((zone) => ['clock', JSON.stringify({ zone })])
    expect(JSON.parse(reply.text)).toEqual({
      text: 'It is late.',
      zones: ['UTC'],
      toolReply: 'It is noon.',
      parallel: clocks,
      streamed: 'Grüße 日本語 🎉',
      pieces: 4,
      streamedParallel: clocks,
      afterwards: 410,
      elsewhere: 404,
      outside: 'not reached',
    })
    expect(upstream.seen).toHaveLength(SAYS.length)
    for (const seen of upstream.seen) {
      expect(seen.headers.authorization).toBe(`Bearer ${key}`)
      expect(JSON.parse(seen.body).model).toBe('of-the-host')
      expect(`${JSON.stringify(seen.headers)}${seen.body}`).not.toContain(SEALED_PLACEHOLDER)
    }
    const bytes = Buffer.concat(sockets.map((socket) => socket.bytes()))
    expect(bytes.includes('It is noon.')).toBe(true)
    expect(findSecret(bytes, key)).toEqual([])
    expect(await new EngineView(ENGINE).containers(installId)).toEqual([])
  })
})

function disposable(runtime: SandboxRuntime): SandboxRuntime & AsyncDisposable {
  return Object.assign(runtime, { [Symbol.asyncDispose]: () => runtime.dispose() })
}
