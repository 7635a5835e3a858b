import { buildImage, createDockerDriver } from '@sandbox/docker-worker'
import { dockerGate } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { containersOf, ENGINE } from '../engine.ts'
import { runChat } from './run-chat.ts'

const IMAGE = `sandbox-test-plugin:${process.versions.bun === undefined ? 'node' : 'bun'}`
const seed = Number(process.env.SANDBOX_CHAT_SEED ?? Math.floor(Math.random() * 2 ** 32))
const size = { messages: 12, channels: 3, speakers: 5, atOnce: 6, restarts: 1 }

describe.skipIf(!dockerGate())('a chat on a real engine', () => {
  beforeAll(async () => {
    await buildImage({ tag: IMAGE, engineSocket: ENGINE })
  }, 120_000)

  test(`[scope:own-key-only] [worker:removed-after-turn] twelve messages in both modes with a restart, by seed ${seed}`, async () => {
    let installId = ''
    const sealed = (install: { installId: string; user: { uid: number; gid: number } }) => {
      installId = install.installId
      return createDockerDriver({ image: IMAGE, installId, user: install.user, engineSocket: ENGINE })
    }
    const report = await runChat(seed, size, { sealed })
    process.stdout.write(`chat: ${JSON.stringify({ ...report, problems: report.problems.length })}\n`)
    expect(report.problems).toEqual([])
    expect(await containersOf(installId)).toEqual([])
  }, 120_000)
})
