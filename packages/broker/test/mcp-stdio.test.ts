import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { mcpServer } from '../src/mcp/index.ts'
import { callHeaders } from './support/guest.ts'
import { openRig, turnInput } from './support/rig.ts'

const PROGRAM = fileURLToPath(new URL('support/stdio-server.ts', import.meta.url))

async function openStdio(era: string, token?: () => string) {
  const command = { command: process.execPath, args: [PROGRAM, era], tokenEnv: 'NOTES_TOKEN' }
  const tools = ['self', 'exit']
  const notes = mcpServer({ name: 'notes', command, tools, ...(token && { token }) })
  const rig = await openRig({ mcp: [notes] })
  const turn = rig.broker.bind(turnInput())
  const call = async (name: string) => {
    using guest = rig.guest()
    const body = { method: 'tools/call', params: { name, arguments: {} } }
    const answer = await guest.call({ path: '/mcp/notes', headers: callHeaders(turn.nonce), body })
    return { status: answer.status, self: JSON.parse(answer.json.result?.content[0].text ?? 'null') }
  }
  return { rig, turn, call, [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose]() }
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe.each(['new', 'old'])('T47 a program of the %s era', (era) => {
  test('runs for one turn, and is gone after it', async () => {
    await using stdio = await openStdio(era)
    expect(await stdio.rig.broker.mcpSpecs()).toMatchObject([
      { name: 'notes', tools: [{ name: 'self' }, { name: 'exit' }] },
    ])
    const [first, second] = [await stdio.call('self'), await stdio.call('self')]
    expect(first.self.pid).toBe(second.self.pid)
    expect(runs(first.self.pid)).toBe(true)
    await stdio.rig.broker.stop()
    expect(runs(first.self.pid)).toBe(false)
  })

  test('a process has the token of its speaker, and is replaced when that changes', async () => {
    let token = 'tok-one-0123456789'
    await using stdio = await openStdio(era, () => token)
    const digest = (text: string) => createHash('sha256').update(text).digest('hex')
    const first = await stdio.call('self')
    expect(first.self.digest).toBe(digest(token))
    expect(first.self.args.join()).not.toContain(token)
    token = 'tok-two-0123456789'
    const second = await stdio.call('self')
    expect(second.self.digest).toBe(digest(token))
    expect(second.self.pid).not.toBe(first.self.pid)
  })

  test('little of the host’s environment is in it', async () => {
    process.env.SANDBOX_TEST_SECRET = 'x'
    try {
      await using stdio = await openStdio(era)
      const { self } = await stdio.call('self')
      expect(self.names).toContain('PATH')
      expect(self.names).not.toContain('SANDBOX_TEST_SECRET')
    } finally {
      delete process.env.SANDBOX_TEST_SECRET
    }
  })

  test('one that dies fails the call, and the next call has another', async () => {
    await using stdio = await openStdio(era)
    const first = await stdio.call('self')
    expect((await stdio.call('exit')).status).toBe(502)
    const second = await stdio.call('self')
    expect(second.status).toBe(200)
    expect(second.self.pid).not.toBe(first.self.pid)
  })
})

test('a program that is not there is a failed call', async () => {
  const command = { command: '/nowhere/mcp-server' }
  await using rig = await openRig({ mcp: [mcpServer({ name: 'notes', command, tools: ['self'] })] })
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  const body = { method: 'tools/call', params: { name: 'self', arguments: {} } }
  const answer = await guest.call({ path: '/mcp/notes', headers: callHeaders(nonce), body })
  expect([answer.status, rig.events[0]?.reason]).toEqual([502, 'upstream_invalid'])
  expect(guest.received.toString()).not.toContain('nowhere')
})
