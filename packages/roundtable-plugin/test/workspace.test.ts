import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SandboxRuntime } from '../src/defaults.ts'
import { ann, bob, type Kit, kit, workspaces } from './runtime-kit.ts'

const MIB = 2 ** 20

/** A guest that leaves as many bytes behind as the message says. */
const FILLS = `
  const { writeFileSync } = await import('node:fs')
  const nonce = await hello()
  const turn = await take(nonce)
  const directory = process.argv[process.argv.indexOf('--workspace') + 1]
  const [, size, slow] = /^fill (\\d+)( slowly)?$/.exec(turn.text)
  if (slow) await new Promise((done) => setTimeout(done, 3000))
  if (size > 0) writeFileSync(directory + '/full', Buffer.alloc(Number(size), 1))
  await post(nonce, turn, { ok: true, text: turn.reset ? 'fresh' : 'done' })
`

const limited = (more: Partial<Kit['options']> = {}) =>
  kit({ guest: FILLS, runtime: { workspaceBytes: MIB, keyContact: 'Olga', ...more } })

const fileOf = (own: Kit, at = 0) =>
  join(own.roots.workspaceRoot, workspaces(own.roots.workspaceRoot)[at] ?? '', 'full')

const refused = {
  ok: false,
  category: 'workspace',
  text: 'The files of this channel take more room than they may, so I did not start. Please ask Olga to make room.',
}
const full = () =>
  expect.stringMatching(/^The workspace \/.* holds \d+ bytes .* 1048576 are allowed\. .*raise workspaceBytes/)

test('W-66 a turn that leaves too much is answered, and the next one is refused until there is less', async () => {
  await using own = await limited()
  expect(await own.runtime.runTurn('fake:1', ann, 'fill 0')).toMatchObject({ ok: true })
  expect(own.lines).toEqual([])
  expect(await own.runtime.runTurn('fake:1', ann, `fill ${2 * MIB}`)).toMatchObject({ ok: true })
  const started = own.turns.filter(({ state }) => state === 'bound').length
  expect(await own.runtime.runTurn('fake:1', bob, 'fill 0')).toEqual(refused)
  expect(own.turns.filter(({ state }) => state === 'bound')).toHaveLength(started)
  expect(own.turns.at(-1)).toMatchObject({ state: 'settled', category: 'workspace', cause: full() })
  expect(own.lines.map(({ level }) => level)).not.toContain('error')
  rmSync(fileOf(own))
  expect(await own.runtime.runTurn('fake:1', ann, 'fill 0')).toMatchObject({ ok: true })
  expect(own.runDirs()).toEqual([])
})

test('W-66 the operator hears of it after the turn, and other channels do not notice', async () => {
  await using own = await limited()
  await own.runtime.runTurn('fake:1', ann, `fill ${2 * MIB}`)
  await expect.poll(() => own.lines.length).toBeGreaterThan(0)
  expect(JSON.stringify(own.lines)).toContain('a workspace is full: its channel gets no turn')
  expect(await own.runtime.runTurn('fake:2', ann, 'fill 0')).toMatchObject({ ok: true })
  expect(await own.runtime.runTurn('fake:1', ann, 'fill 0')).toEqual(refused)
})

test('RL-12 W-66 starting over can be asked for while a channel is full, and waits for the turn that is let in', async () => {
  await using own = await limited()
  await own.runtime.runTurn('fake:1', ann, `fill ${2 * MIB}`)
  own.runtime.startFresh('fake:1')
  expect(await own.runtime.runTurn('fake:1', ann, 'fill 0')).toEqual(refused)
  rmSync(fileOf(own))
  expect(await own.runtime.runTurn('fake:1', ann, 'fill 0')).toEqual({ ok: true, text: 'fresh' })
})

test('W-66 a host that starts on a full workspace refuses too: it is measured before a start', async () => {
  await using own = await limited()
  await own.runtime.runTurn('fake:1', ann, `fill ${2 * MIB}`)
  await own.runtime.dispose()
  await using again = new SandboxRuntime(own.options)
  expect(await again.runTurn('fake:1', ann, 'fill 0')).toEqual(refused)
  expect(own.runDirs()).toEqual([])
})

test('W-66 no worker waits for a channel that is full, and the turn after is refused although one waited', async () => {
  await using own = await limited({ warm: {} })
  const turn = own.runtime.runTurn('fake:1', ann, `fill ${2 * MIB} slowly`)
  // The next worker waits before this turn fills the workspace: it was measured while there was room.
  await expect.poll(() => own.runtime.warmed(), { timeout: 20_000 }).toEqual(['fake:1'])
  expect(await turn).toMatchObject({ ok: true })
  expect(await own.runtime.runTurn('fake:1', ann, 'fill 0')).toEqual(refused)
  await expect.poll(() => own.runtime.warmed(), { timeout: 20_000 }).toEqual([])
})

test('W-66 a link in place of what is measured leads nowhere: what it leads to is not counted', async () => {
  await using own = await limited()
  await own.runtime.runTurn('fake:1', ann, 'fill 0')
  const elsewhere = join(own.roots.free, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'large'), Buffer.alloc(3 * MIB, 1))
  symlinkSync(elsewhere, fileOf(own))
  expect(await own.runtime.runTurn('fake:1', ann, 'fill 0')).toMatchObject({ ok: true })
})

test.each([0, MIB - 1, 1.5 * MIB + 0.5, Number.NaN, '1', 2 ** 51])(
  'workspaceBytes: %s is refused by name',
  async (workspaceBytes) => {
    await using own = await kit()
    const options = { ...own.options, workspaceBytes: workspaceBytes as number }
    expect(() => new SandboxRuntime(options)).toThrow(/^workspaceBytes: must be a whole number/)
  },
)
