import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Driver } from '@sandbox/docker-worker'
import { chatText, chatToolCalls } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { ErasedDirectories } from '../src/runtime/erased-directories.ts'
import { ownDir } from './account.ts'
import { piKit } from './pi-kit.ts'
import { ann, bob, type Kit, kit, workspaces } from './runtime-kit.ts'

const patient = { timeout: 20_000, interval: 5 }

/** What the model is told to do: `remember X` stores a fact of the speaker, anything else is answered. */
function remembering(text: string) {
  const wanted = /remember (\w+)/.exec(text)?.[1]
  return wanted !== undefined && !text.includes('Saved.')
    ? chatToolCalls([{ name: 'memory_set', input: { scope: 'speaker', key: wanted, text: `the ${wanted}` } }])
    : chatText('noted')
}

const rememberingKit = (more: Parameters<typeof kit>[0] = {}): Promise<Kit> =>
  kit({ script: ({ body }) => remembering(lastOf(body)), ...more })

function lastOf(body: string): string {
  const messages: { role: string }[] = JSON.parse(body).messages
  return JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === 'user')))
}

const lastBody = (own: Kit) => own.upstream.seen.at(-1)?.body ?? ''
const facts = (own: Kit) =>
  workspaces(own.roots.workspaceRoot).map((name) => {
    const file = join(own.roots.workspaceRoot, name, 'memory.json')
    return JSON.parse(readFileSync(file, 'utf8')).entries.map(({ key }: { key: string }) => key)
  })

test('[erase:nothing-left] a sealed conversation is erased with its memory, its history and its waiting worker; the next message starts anew', async () => {
  await using own = await rememberingKit({ runtime: { warm: {} } })
  await own.runtime.runTurn('fake:1', ann, 'remember tea')
  await own.runtime.runTurn('fake:2', ann, 'remember cake')
  await expect.poll(() => own.runtime.warmed().length, patient).toBe(2)
  await own.runtime.deleteConversation('fake:1')
  expect(own.runtime.warmed()).toEqual(['fake:2'])
  expect([facts(own), readdirSync(own.roots.workspaceRoot).filter((name) => name.startsWith('.'))]).toEqual([
    [['cake']],
    [],
  ])
  await own.runtime.runTurn('fake:1', ann, 'what do you know?')
  expect(lastBody(own)).not.toContain('tea')
  await own.runtime.runTurn('fake:2', ann, 'what do you know?')
  expect(lastBody(own)).toContain('the cake')
  await own.runtime.deleteConversation('fake:9')
})

test('[erase:nothing-left] erasing ends the running turn first, and a message meanwhile waits and starts anew', async () => {
  const asked = Promise.withResolvers<void>()
  await using own = await kit({
    script: ({ body }) => {
      if (!body.includes('hang')) return chatText('fresh')
      asked.resolve()
      return new Promise(() => {})
    },
  })
  const turn = own.runtime.runTurn('fake:1', ann, 'hang')
  await asked.promise
  const erased = own.runtime.deleteConversation('fake:1')
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  const next = own.runtime.runTurn('fake:1', bob, 'hello')
  await erased
  expect(await next).toEqual({ ok: true, text: 'fresh' })
  expect(own.upstream.seen.at(-1)?.body).not.toContain('hang')
  expect(own.lines.filter(({ level }) => level === 'error')).toEqual([])
})

/** The driver of a runtime; while `stuck`, its workers cannot be removed. */
function stickyDriver(driver: Driver, stuck: () => boolean): Driver {
  return {
    ...driver,
    kind: driver.kind,
    isolation: driver.isolation,
    check: (signal) => driver.check(signal),
    verify: (posture) => driver.verify(posture),
    sweep: (live) => driver.sweep(live),
    [Symbol.asyncDispose]: () => driver[Symbol.asyncDispose](),
    async start(spec, signal) {
      const worker = await driver.start(spec, signal)
      return {
        id: worker.id,
        workerId: worker.workerId,
        exited: worker.exited,
        output: () => worker.output(),
        async remove() {
          if (stuck()) throw new TypeError('the engine says no')
          await worker.remove()
        },
      }
    },
  }
}

test('[erase:nothing-left] a worker that cannot be removed keeps the conversation, and erasing may be tried again', async () => {
  let stuck = false
  await using own = await kit({ wrap: (driver) => stickyDriver(driver, () => stuck) })
  stuck = true
  await expect(own.runtime.runTurn('fake:1', ann, 'hello')).rejects.toMatchObject({ code: 'cleanup_failed' })
  await expect(own.runtime.deleteConversation('fake:1')).rejects.toThrow('the engine says no')
  expect(workspaces(own.roots.workspaceRoot)).toHaveLength(1)
  stuck = false
  await own.runtime.deleteConversation('fake:1')
  expect(workspaces(own.roots.workspaceRoot)).toEqual([])
})

test('[erase:nothing-left] a crash in the middle of an erasure leaves nothing that the next start or erasure does not find', async () => {
  await using own = await rememberingKit()
  await own.runtime.runTurn('fake:1', ann, 'remember tea')
  const root = own.roots.workspaceRoot
  const [name] = workspaces(root)
  const half = `.gone-${'0'.repeat(32)}.000000000000`
  renameSync(join(root, name as string), join(root, half))
  await own.runtime.runTurn('fake:1', ann, 'what do you know?')
  expect(lastBody(own)).not.toContain('tea')
  await own.runtime.dispose()
  await using again = new SandboxRuntime(own.options)
  expect(existsSync(join(root, half))).toBe(true)
  await again.start()
  expect(existsSync(join(root, half))).toBe(false)
})

test('[erase:nothing-left] names of any length are erased, and what earlier attempts left of the same name alone', async () => {
  using dir = ownDir()
  const name = 'n'.repeat(255)
  const erased = new ErasedDirectories(dir.path)
  for (const one of [name, 'other']) mkdirSync(join(dir.path, one, 'inner'), { recursive: true })
  writeFileSync(join(dir.path, name, 'inner', 'file'), '')
  await Promise.all([erased.erase(name), erased.erase(name), erased.sweep()])
  expect(readdirSync(dir.path)).toEqual(['other'])
})

test('what cannot be removed is told to whoever erases it, and keeps no host from starting', async () => {
  using dir = ownDir()
  const erased = new ErasedDirectories(dir.path)
  const gone = (n: number) => `.gone-${'0'.repeat(32)}.00000000000${n}`
  // No directory: neither can be removed as one.
  writeFileSync(join(dir.path, gone(0)), '')
  mkdirSync(join(dir.path, gone(1)))
  writeFileSync(join(dir.path, 'name'), '')
  expect(await erased.sweep()).toEqual([gone(1)])
  await expect(erased.erase('name')).rejects.toMatchObject({ code: 'ENOTDIR' })
})

test('[erase:nothing-left] a plain process that puts a link in the place of its workspace has the link erased, and nothing else', async () => {
  await using own = await kit({
    guest: `
      const { rmSync, symlinkSync } = await import('node:fs')
      const n = await hello(); const turn = await take(n)
      const workspace = process.argv[process.argv.indexOf('--workspace') + 1]
      if (turn.text !== '') { rmSync(workspace, { recursive: true }); symlinkSync(turn.text, workspace) }
      await post(n, turn, { ok: true, text: 'done' })`,
  })
  const elsewhere = join(own.roots.free, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'file'), 'stays')
  await own.runtime.runTurn('fake:1', ann, elsewhere)
  expect(await own.runtime.runTurn('fake:1', ann, '')).toMatchObject({ ok: false, category: 'container' })
  await own.runtime.deleteConversation('fake:1')
  expect(readdirSync(elsewhere)).toEqual(['file'])
  expect(await own.runtime.runTurn('fake:1', ann, '')).toMatchObject({ ok: true })
})

test('ME-02 [erase:speaker-forgotten] one speaker is forgotten in one channel or in all, between turns; others are not', async () => {
  await using own = await rememberingKit()
  for (const channel of ['fake:1', 'fake:2'] as const) {
    await own.runtime.runTurn(channel, ann, 'remember tea')
    await own.runtime.runTurn(channel, bob, 'remember cake')
  }
  const turn = own.runtime.runTurn('fake:1', ann, 'remember milk')
  expect(await own.runtime.forgetSpeaker('u-ann', 'fake:1')).toBe(1)
  await turn
  expect(facts(own).toSorted((a, b) => a.length - b.length)).toEqual([['cake'], ['tea', 'cake']])
  expect([await own.runtime.forgetSpeaker('u-ann'), await own.runtime.forgetSpeaker('u-ann')]).toEqual([1, 0])
  expect(facts(own)).toEqual([['cake'], ['cake']])
  expect(await own.runtime.forgetSpeaker('u-ann', 'fake:9')).toBe(0)
  await own.runtime.runTurn('fake:1', bob, 'what do you know?')
  expect(lastBody(own)).toContain('the cake')
  await expect(own.runtime.forgetSpeaker('')).rejects.toMatchObject({ code: 'input_invalid' })
})

test('RL-15 [erase:speaker-forgotten] the roots are not given back while a speaker is being forgotten', async () => {
  await using own = await rememberingKit()
  await own.runtime.runTurn('fake:1', ann, 'remember tea')
  await own.runtime.dispose()
  await using again = new SandboxRuntime(own.options)
  const order: string[] = []
  const forgotten = again.forgetSpeaker(ann.id).then((count) => order.push(`forgotten in ${count}`))
  await again.dispose().then(() => order.push('disposed'))
  await forgotten
  expect(order).toEqual(['forgotten in 1', 'disposed'])
})

test('[erase:speaker-forgotten] a worker that cannot be removed still has the memory: nobody is forgotten before it is gone', async () => {
  let stuck = false
  await using own = await rememberingKit({ wrap: (driver) => stickyDriver(driver, () => stuck) })
  await own.runtime.runTurn('fake:1', ann, 'remember tea')
  stuck = true
  const turn = own.runtime.runTurn('fake:1', ann, 'hello')
  const meanwhile = own.runtime.forgetSpeaker('u-ann')
  await Promise.all([
    expect(turn).rejects.toMatchObject({ code: 'cleanup_failed' }),
    expect(meanwhile).rejects.toThrow('the engine says no'),
  ])
  await expect(own.runtime.forgetSpeaker('u-ann', 'fake:1')).rejects.toThrow('the engine says no')
  expect(facts(own)).toEqual([['tea']])
  stuck = false
  expect(await own.runtime.forgetSpeaker('u-ann')).toBe(1)
  expect(facts(own)).toEqual([[]])
})

test('[erase:nothing-left] a Pi conversation is erased with its sessions, attachments, worker and record; the next message starts anew', async () => {
  const forgotten: unknown[] = []
  await using own = piKit({ ports: { forgetMemory: (whom) => void forgotten.push(whom) } })
  const file = { name: 'a.txt', data: new Uint8Array([1]) }
  await own.say('hello', { attachments: [file] })
  writeFileSync(join(own.layout.sessionsDir('fake:1'), 'one.jsonl'), '{}\n')
  await own.say('hello', { channel: 'fake:2' })
  const running = Promise.withResolvers<void>()
  own.driver.script = ({ text }) => {
    if (text !== 'hang') return { ok: true, text, files: [] }
    running.resolve()
    return new Promise(() => {})
  }
  const turn = own.say('hang')
  await running.promise
  const erased = own.runtime.deleteConversation('fake:1')
  const next = turn.then(() => own.say('anew'))
  expect(await turn).toMatchObject({ ok: false, category: 'stopped' })
  await erased
  expect(await next).toMatchObject({ ok: true, text: 'anew' })
  expect(forgotten).toEqual([{ channel: 'fake:1' }])
  expect(readdirSync(own.layout.sessionsDir('fake:1'))).toEqual([])
  expect(readdirSync(own.layout.attachmentDir('fake:1'))).toEqual([])
  await own.runtime.deleteConversation('fake:1')
  expect(readdirSync(own.layout.partyDir).filter((name) => name.includes('fake'))).toEqual(['fake_2'])
  expect(own.driver.alive().map(({ spec }) => spec.workspaceDir)).toEqual([own.layout.workspaceOf('fake:2')])
})

test('[erase:speaker-forgotten] in Pi mode the operator’s memory is asked to forget, and says so when it cannot', async () => {
  const forgotten: unknown[] = []
  await using own = piKit({
    ports: { memory: () => 'notes', forgetMemory: async (whom) => void forgotten.push(whom) },
  })
  await own.runtime.forgetSpeaker('u-ann')
  await own.runtime.forgetSpeaker('u-ann', 'fake:1')
  expect(forgotten).toEqual([{ speaker: { id: 'u-ann' } }, { channel: 'fake:1', speaker: { id: 'u-ann' } }])
  await using lacking = piKit({ ports: { memory: () => 'notes' } })
  await expect(lacking.runtime.forgetSpeaker('u-ann')).rejects.toThrow(/forgetMemory/)
  await lacking.runtime.deleteConversation('fake:1')
  expect(lacking.lines).toMatchObject([{ level: 'warn', fields: { channel: 'fake:1' } }])
  await using failing = piKit({ ports: { forgetMemory: () => Promise.reject(new TypeError('no')) } })
  await expect(failing.runtime.forgetSpeaker('u-ann')).rejects.toMatchObject({ code: 'hook_failed' })
  await expect(failing.runtime.deleteConversation('fake:1')).rejects.toMatchObject({ code: 'hook_failed' })
})

test('PR-04 [erase:nothing-left] an alias of a Pi channel erases nothing of it; once it is erased, its directory is free', async () => {
  await using own = piKit()
  await own.say('hello', { channel: 'fake:a.b' })
  await expect(own.runtime.deleteConversation('fake:a_b')).rejects.toMatchObject({ code: 'channel_alias' })
  await own.runtime.deleteConversation('fake:a.b')
  expect(await own.say('hello', { channel: 'fake:a_b' })).toMatchObject({ ok: true })
})
