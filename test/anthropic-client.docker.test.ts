import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { buildImage, createDockerDriver } from '@sandbox/docker-worker'
import { type PiDeskTurn, PiSandboxBroker } from '@sandbox/pi-broker'
import { PI_PLACEHOLDER } from '@sandbox/protocol'
import {
  canary,
  dockerGate,
  dockerSocket,
  findSecret,
  scriptedUpstream,
  tempDir,
  type UpstreamScript,
} from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  answers,
  type Block,
  event,
  fails,
  messageStream,
  streams,
} from '../packages/pi-broker/test/support/messages-service.ts'
import { bundleGuest } from './support/bundle-guest.ts'
import { EngineView } from './support/engine-view.ts'
import { recordSocket } from './support/recorded-socket.ts'

const ENGINE = dockerSocket() ?? '/nonexistent'
const IMAGE = `sandbox-test-anthropic:${process.versions.bun ? 'bun' : 'node'}`
const INSTALL = `anthropic-${process.pid}`
const isRoot = process.geteuid?.() === 0
const account = isRoot
  ? { uid: 64_202, gid: 64_202 }
  : { uid: process.geteuid?.() ?? -1, gid: process.getegid?.() ?? -1 }

const TEXT: Block = { type: 'text', text: 'Es ist zwölf. 🕛' }
const THOUGHT: Block = { type: 'thinking', thinking: 'A look at the clock.', signature: 'c2lnbmF0dXJl' }
const HIDDEN: Block = { type: 'redacted_thinking', data: 'b3BhcXVl' }
const CALL: Block = { type: 'tool_use', id: 'toolu_1', name: 'clock', input: { zone: 'Asia/Tokyo' } }
const overloaded = event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })

/** What the Messages service does, call by call. */
const DOES: readonly UpstreamScript[] = [
  answers([TEXT]),
  answers([]),
  answers([THOUGHT, HIDDEN, TEXT]),
  answers([THOUGHT, CALL]),
  answers([TEXT]),
  fails(400, 'invalid_request_error', 'no'),
  fails(401, 'authentication_error', 'no'),
  fails(413, 'request_too_large', 'no'),
  fails(429, 'rate_limit_error', 'no', { 'retry-after': '3' }),
  fails(529, 'overloaded_error', 'no'),
  streams([...messageStream([TEXT]).slice(0, 5), overloaded]),
]

const turn: Omit<PiDeskTurn, 'nonce'> = {
  turnId: 't-1',
  text: 'go',
  speaker: { id: 'u-ann', name: 'Ann' },
  profile: 'default',
  thinking: 'high',
  model: 'of-the-host',
  timeZone: 'UTC',
  attachments: [],
  images: [],
  mcp: [],
}

describe.skipIf(!dockerGate())('issue 6: the official Anthropic client in a sealed container', () => {
  beforeAll(async () => {
    using dir = tempDir()
    const bundle = await bundleGuest(dir.path, {
      guest: './anthropic-guest.mjs',
      library: '@anthropic-ai/sdk',
      of: 'pi-broker',
    })
    await buildImage({ tag: IMAGE, engineSocket: ENGINE, bundle })
  })

  test('text, count_tokens, a stream with thinking, a tool loop, errors and one in mid-stream; the token stays outside [secret:not-in-guest-bytes] [container:no-network]', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o711)
    const [runDir, workspaceDir, away] = ['r', 'w', 'a'].map((name) => join(dir.path, name)) as [
      string,
      string,
      string,
    ]
    for (const path of [runDir, workspaceDir, away]) {
      mkdirSync(path, { mode: 0o700 })
      if (isRoot && path !== away) chownSync(path, account.uid, account.gid)
    }
    const token = canary()
    let calls = 0
    await using upstream = await scriptedUpstream((...request) => DOES[calls++]?.(...request))
    const broker = new PiSandboxBroker({
      model: 'of-the-host',
      upstream: upstream.url,
      allowHttp: true,
      oauthToken: () => token,
    })
    const driver = createDockerDriver({
      image: IMAGE,
      engineSocket: ENGINE,
      installId: INSTALL,
      user: account,
      network: 'loopback',
    })
    try {
      const socket = join(runDir, 'worker.sock')
      await broker.listen(socket, account)
      await using recorded = await recordSocket(socket, away, account)
      const spec = { workerId: '0123456789abcdef', channelHash: 'c'.repeat(64), epoch: 'e1' }
      const worker = await driver.start({ ...spec, runDir, workspaceDir })
      const { posture } = await broker.desk.hello()
      expect(driver.verify(posture)).toEqual([])
      const signal = AbortSignal.timeout(50_000)
      const deadline = performance.now() + 50_000
      const { speaker, profile, thinking, turnId } = turn
      const bound = broker.bind(
        { channel: 'test:room', speaker, profile, thinking, deadline, signal },
        { turnId },
      )
      const outcome = await broker.desk.deliver({ ...turn, nonce: bound.nonce }, { deadline, signal })
      bound.release()
      await worker.remove()
      expect(outcome, worker.output()).toMatchObject({ ok: true })
      expect(JSON.parse('text' in outcome ? outcome.text : '')).toEqual({
        text: [TEXT],
        counted: 42,
        thoughts: THOUGHT.thinking,
        streamed: [THOUGHT, HIDDEN, TEXT],
        called: [THOUGHT, CALL],
        toolReply: [TEXT],
        failures: [
          [400, 'invalid_request_error'],
          [401, 'invalid_request_error'], // a refused token is told in the broker's words
          [413, 'request_too_large'],
          [429, 'rate_limit_error'],
          [529, 'overloaded_error'],
          ['in mid-stream', 'overloaded_error'],
        ],
      })
      expect(upstream.seen).toHaveLength(DOES.length)
      for (const { headers, body } of upstream.seen) {
        expect(headers.authorization).toBe(`Bearer ${token}`)
        expect(JSON.parse(body).model).toBe('of-the-host')
        expect(`${JSON.stringify(headers)}${body}`).not.toContain(PI_PLACEHOLDER)
      }
      expect(upstream.seen[4]?.body).toContain('noon in Asia/Tokyo')
      expect(findSecret(recorded.bytes(), token)).toEqual([])
    } finally {
      await driver[Symbol.asyncDispose]()
      await broker.stop()
    }
    expect(await new EngineView(ENGINE).containers(INSTALL)).toEqual([])
  })
})
