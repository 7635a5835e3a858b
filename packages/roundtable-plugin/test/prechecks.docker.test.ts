import { buildImage, createDockerDriver } from '@sandbox/docker-worker'
import { dockerGate } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { containersOf, ENGINE } from './engine.ts'
import { fired, type PrecheckKitOptions, precheckKit } from './precheck-kit.ts'

const IMAGE = `sandbox-test-precheck:${process.versions.bun === undefined ? 'node' : 'bun'}`

/** A runner on the real engine whose install id is known. */
async function engineKit(options: PrecheckKitOptions = {}) {
  let id = ''
  const kit = await precheckKit({
    ...options,
    makeDriver({ installId, user }) {
      id = installId
      return createDockerDriver({ guest: 'precheck', image: IMAGE, engineSocket: ENGINE, installId, user })
    },
  })
  return { kit, containers: () => containersOf(id) }
}

/** Looks for whatever it must not have, and calls a tool. */
const LOOKS = `
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
const refused = (path) => {
  try { writeFileSync(path, 'x'); return 'written' } catch (error) { return error.code }
}
export default async ({ mcp }) => ({
  wake: true,
  context: JSON.stringify({
    workspace: [readdirSync('/workspace'), refused('/workspace/x')],
    root: refused('/x'),
    environment: Object.keys(process.env).sort(),
    networks: readFileSync('/proc/net/dev', 'utf8').match(/\\w+(?=:)/g),
    notes: await mcp.call('notes', 'find', { what: 'tea' }),
  }),
})`

describe.skipIf(!dockerGate())('prechecks on a real engine', () => {
  beforeAll(async () => {
    await buildImage({ tag: IMAGE, engineSocket: ENGINE })
  }, 180_000)

  test('PC-09 a script runs behind every wall, calls its tool, and its container is gone', async () => {
    const { kit, containers } = await engineKit()
    await using _ = kit
    const result = await kit.runner.run(LOOKS, fired())
    expect(JSON.parse((result as { context: string }).context)).toEqual({
      workspace: [[], 'EROFS'],
      root: 'EROFS',
      environment: ['HOME', 'HOSTNAME', 'PATH'],
      networks: ['lo'],
      notes: 'found tea',
    })
    expect([kit.left(), kit.lines, await containers()]).toEqual([[], [], []])
  }, 60_000)

  test('PC-09 PC-14 a script that takes more memory than it may is told so', async () => {
    const { kit, containers } = await engineKit()
    await using _ = kit
    const takes = `const all = []
      export default () => { for (;;) all.push(Buffer.alloc(8 * 2 ** 20, 1)) }`
    await expect(kit.runner.run(takes, fired())).rejects.toThrow('The script used more memory than it may.')
    expect([kit.left(), await containers()]).toEqual([[], []])
  }, 60_000)

  test('W-93 worker:removed-after-abort a script that never ends is removed with its container', async () => {
    const over = new AbortController()
    const { kit, containers } = await engineKit({
      runner: { onCall: ({ name }) => name === 'ack' && over.abort() },
    })
    await using _ = kit
    const script = `for (const name of ['SIGTERM', 'SIGINT']) process.on(name, () => {})
      export default () => { for (;;); }`
    const running = kit.runner.run(script, fired({ signal: over.signal }))
    await expect(running).rejects.toThrow('The script was stopped.')
    expect([kit.left(), await containers()]).toEqual([[], []])
  }, 60_000)
})
