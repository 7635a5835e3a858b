import { createHash } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { type ImageGuest, type ImagePlan, planImage } from './image-archive.ts'
import { piGuest } from './pi-guest.ts'
import { findRuntime } from './runtime-files.ts'

const runtime = await findRuntime(process.execPath)
/** To be hashed quickly. */
const tiny = { ...runtime, path: fileURLToPath(import.meta.url), libraries: [] }

function paths(guest: ImageGuest): string[] {
  return guest.layers.flat().map(({ path }) => path)
}

async function archived(plan: ImagePlan): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of plan.archive('x:1')) hash.update(chunk)
  return hash.digest('hex')
}

describe('the guest of a Pi image', () => {
  test('is the agent, what starts it, the licences of what it is made of, and the operator’s content as it is', async () => {
    using content = tempDir()
    mkdirSync(join(content.path, 'skills', 'sail'), { recursive: true })
    writeFileSync(join(content.path, 'index.mjs'), 'export const workerContent = () => ({})')
    writeFileSync(join(content.path, 'skills', 'sail', 'SKILL.md'), 'x')
    const guest = await piGuest({ runtime, content: content.path })
    expect(guest).toMatchObject({ kind: 'pi', entry: '/sandbox/pi-start.cjs' })
    expect(paths(guest)).toEqual([
      'sandbox/pi-start.cjs',
      'sandbox/pi-agent.cjs',
      'sandbox/pi-licences.txt',
      'sandbox/content/',
      'sandbox/content/index.mjs',
      'sandbox/content/skills/',
      'sandbox/content/skills/sail/',
      'sandbox/content/skills/sail/SKILL.md',
    ])
    const licences = guest.layers[0]?.[2]?.content?.toString() ?? ''
    for (const name of ['@anthropic-ai/sdk', '@earendil-works/pi-coding-agent 1.6.0 (MIT)', 'typebox']) {
      expect(licences).toContain(name)
    }
  })

  test('decision 22: equal content is an equal hash, other content another; the code cache does not count', async () => {
    using content = tempDir()
    const write = (text: string) => writeFileSync(join(content.path, 'index.mjs'), text)
    const plan = async (more: Partial<ImageGuest> = {}) =>
      planImage(tiny, { ...(await piGuest({ runtime, content: content.path })), ...more })
    write('1')
    const cache = (text: string) => ({
      derived: async () => [{ path: 'c', mode: 0o644, content: Buffer.from(text) }],
    })
    const [first, second] = [await plan(cache('one')), await plan(cache('two'))]
    expect(second.contentHash).toBe(first.contentHash)
    expect(await archived(first)).not.toBe(await archived(second))
    write('2')
    expect((await plan()).contentHash).not.toBe(first.contentHash)
    expect((await planImage(tiny, await piGuest({ runtime }))).contentHash).not.toBe(first.contentHash)
  })

  test('content with a link is refused by its name: it could lead to any file of this machine', async () => {
    using content = tempDir()
    symlinkSync('/etc/shadow', join(content.path, 'shadow'))
    await expect(piGuest({ runtime, content: content.path })).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining(join(content.path, 'shadow')),
    })
    await expect(piGuest({ runtime, content: join(content.path, 'none') })).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining('does not exist'),
    })
    const file = join(content.path, 'file')
    writeFileSync(file, '')
    await expect(piGuest({ runtime, content: file })).rejects.toMatchObject({
      code: 'options_invalid',
      message: `The content folder ${file} is no folder.`,
    })
  })

  test('an agent that does not start is told before an image is made of it', async () => {
    if (runtime.kind === 'bun') return
    using folder = tempDir()
    const bundle = join(folder.path, 'agent.cjs')
    writeFileSync(bundle, 'process.exit(9)')
    const guest = await piGuest({ runtime, bundle })
    await expect(guest.derived?.()).rejects.toMatchObject({ code: 'runtime_unsuitable' })
    const stopped = await piGuest({ runtime, bundle, signal: AbortSignal.abort() })
    await expect(stopped.derived?.()).rejects.toMatchObject({ code: 'aborted' })
  })
})
