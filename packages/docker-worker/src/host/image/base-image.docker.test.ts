import { randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { PROTOCOL_VERSION } from '@sandbox/protocol'
import { dockerGate, tempDir } from '@sandbox/testing'
import { beforeAll, describe, expect, test } from 'vitest'
import { runCommand } from '../../command/run-command.ts'
import { TINY_GUEST } from '../../testing/tiny-guest.ts'
import { ENGINE } from '../../testing/tiny-image.ts'
import { testPlace, testUser } from '../../testing/worker-bench.ts'
import { connectEngine, type Engine } from '../container/docker-client.ts'
import { IMAGE_FILES } from '../container/sealed-spec.ts'
import { createDockerDriver } from '../docker-driver.ts'
import { buildImage } from './build-image.ts'
import { guestFile } from './guest-bundle.ts'
import { tarStream } from './tar.ts'

const KIND = process.versions.bun ? 'bun' : 'node'
const OWN = `sandbox-test-base-own:${KIND}`
const BASE = `sandbox-test-base:${KIND}`
const BASED = `sandbox-test-based:${KIND}`
const DOCKERFILE = fileURLToPath(new URL('../../../Dockerfile', import.meta.url))

/** An archive with a recipe and programs of those names. */
const context = (recipe: string, programs: readonly string[] = []) =>
  Readable.from(
    tarStream([
      { path: 'Dockerfile', mode: 0o644, content: Buffer.from(recipe) },
      ...programs.map((path) => ({ path, mode: 0o644, content: readFileSync(guestFile(path)) })),
    ]),
    { objectMode: false },
  )

const doctor = (image: string) => command(['doctor', '--image', image, '--socket', ENGINE])

async function command(args: readonly string[]): Promise<{ code: number; out: string }> {
  const lines: string[] = []
  const code = await runCommand(args, {
    env: {},
    signal: new AbortController().signal,
    out: (line) => lines.push(line),
    progress: () => {},
    write: () => {},
  })
  return { code, out: lines.join('\n') }
}

describe.skipIf(!dockerGate())('an image on a base', () => {
  let engine: Engine
  const onBase = { base: BASE, tag: BASED, runtime: IMAGE_FILES.runtime, engineSocket: ENGINE }

  /** What an operator's image brings: variables, a volume, a command. Its files are those of our own runtime. */
  beforeAll(async () => {
    engine = await connectEngine(ENGINE)
    await buildImage({ tag: OWN, engineSocket: ENGINE })
    const recipe = `FROM ${OWN}\nENV NODE_OPTIONS=--inspect TOKEN=x\nVOLUME /data\nCMD ["serve"]\nUSER 0\n`
    await engine.build(context(recipe), { tag: BASE, args: {} })
  }, 180_000)

  test('it is built from the base without a registry, and its worker stands behind every wall', async () => {
    const lines: string[] = []
    const built = await buildImage({ ...onBase, onProgress: (line) => lines.push(line) })
    const image = await engine.image(BASED)
    expect(image?.labels).toEqual({
      'sandbox.protocol': String(PROTOCOL_VERSION),
      'sandbox.precheck': '1',
      'sandbox.runtime': KIND,
      'sandbox.runtime.version': process.versions.bun ?? process.versions.node,
      'sandbox.content': built.contentHash,
    })
    // Its files and nothing else: neither a variable nor a volume of the base.
    expect([image?.environment.map((variable) => variable.split('=')[0]), image?.volumes]).toEqual([
      image?.environment.length === 0 ? [] : ['PATH'],
      [],
    ])
    const { code, out } = await doctor(BASED)
    expect(out).not.toContain('FAIL')
    expect(code).toBe(0)
    // A tmpfs takes its mode from the image.
    using dir = tempDir()
    const program = [IMAGE_FILES.runtime, '-e', `require('node:fs').writeFileSync('/tmp/own', '')`]
    const run = ['run', '--image', BASED, '--run-dir', dir.path, '--socket', ENGINE, '--', ...program]
    expect((await command(run)).code).toBe(0)
  })

  test('decision 22: equal inputs have one content hash and are built once; another guest or base is another', async () => {
    using dir = tempDir()
    const other = join(dir.path, 'other.mjs')
    writeFileSync(other, TINY_GUEST)
    const first = await buildImage(onBase)
    expect(await buildImage(onBase)).toEqual({ ...first, built: false })
    const tag = `${BASED}-other`
    const another = await buildImage({ ...onBase, tag, bundle: other })
    expect(another.contentHash).not.toBe(first.contentHash)
    // Built anew after its image is gone: another id perhaps, but the same hash.
    await engine.removeImage(another.id)
    expect(await engine.image(tag)).toBeUndefined()
    const again = await buildImage({ ...onBase, tag, bundle: other })
    expect([again.built, again.contentHash]).toEqual([true, another.contentHash])
    const ownBase = await buildImage({ ...onBase, tag, base: OWN })
    expect(ownBase.contentHash).toBe(first.contentHash)
    // By its name: another one may lead to the same image.
    await engine.removeImage(tag)
  }, 120_000)

  test('a base that is not there, a runtime that it does not have, and a bad name are refused', async () => {
    await expect(buildImage({ ...onBase, base: 'sandbox-test-nothing:1' })).rejects.toMatchObject({
      code: 'image_missing',
      message: expect.stringContaining('none is pulled'),
    })
    const tag = `${BASED}-wrong`
    await expect(buildImage({ ...onBase, tag, runtime: '/usr/bin/nothing' })).rejects.toMatchObject({
      code: expect.stringMatching(/^(start_failed|runtime_unsuitable)$/),
    })
    await expect(buildImage({ ...onBase, runtime: 'node' })).rejects.toMatchObject({
      code: 'options_invalid',
    })
    await expect(buildImage({ ...onBase, base: '--privileged' })).rejects.toMatchObject({
      code: 'options_invalid',
    })
    await expect(buildImage({ ...onBase, guest: 'pi' })).rejects.toMatchObject({ code: 'options_invalid' })
    expect(await engine.image(tag)).toBeUndefined()
    expect(await engine.list(`sandbox-build-${process.geteuid?.() ?? 0}`)).toEqual([])
  })

  test('the Dockerfile builds by hand as well, with nothing but a base and the guest', async () => {
    const tag = `sandbox-test-by-hand:${KIND}`
    const recipe = readFileSync(DOCKERFILE, 'utf8')
    expect(recipe).toContain(`LABEL sandbox.protocol="${PROTOCOL_VERSION}" `)
    const args = { BASE, RUNTIME: IMAGE_FILES.runtime, KIND }
    await engine.build(context(recipe, ['sealed.js', 'precheck.js']), { tag, args })
    const { code, out } = await doctor(tag)
    expect(out).not.toContain('FAIL')
    expect(code).toBe(0)
    await engine.removeImage((await engine.image(tag))?.id ?? '')
  }, 60_000)

  test('a recipe that fails is told with the reason', async () => {
    const broken = context(`FROM ${OWN}\nCOPY nothing /nothing\n`)
    await expect(engine.build(broken, { tag: `${BASED}-broken`, args: {} })).rejects.toMatchObject({
      code: 'engine_failed',
      message: expect.stringContaining('nothing'),
    })
  })
})

describe.skipIf(!dockerGate())('the image before a build', () => {
  const tag = `sandbox-test-replaced:${randomBytes(4).toString('hex')}`

  test('W-63 it is deleted when nothing uses it, and stays while a container or a name does', async () => {
    const engine = await connectEngine(ENGINE)
    using dir = tempDir()
    const bundle = join(dir.path, 'guest.mjs')
    const lines: string[] = []
    const build = async (mark: string) => {
      writeFileSync(bundle, `${TINY_GUEST}\n// ${mark}${randomBytes(4).toString('hex')}\n`)
      return await buildImage({ tag, engineSocket: ENGINE, bundle, onProgress: (line) => lines.push(line) })
    }
    const first = await build('first')
    const second = await build('second')
    expect(await engine.image(first.id)).toBeUndefined()
    expect(lines.at(-1)).toMatch(/^before .* is deleted$/)
    const installId = `test-replaced-${randomBytes(4).toString('hex')}`
    await using place = await testPlace('await guest.report(1); setInterval(() => {}, 1000)')
    await using driver = createDockerDriver({ image: tag, installId, user: testUser(), engineSocket: ENGINE })
    const worker = await driver.start(place.spec)
    const third = await build('third')
    expect(await engine.image(second.id)).toBeDefined()
    expect(lines.at(-1)).toMatch(/^before .* stays: a container uses it$/)
    await worker.remove()
    // The driver that had checked the image before finds the new one by its name.
    await engine.removeImage(second.id)
    const next = await driver.start({ ...place.spec, workerId: randomBytes(8).toString('hex') })
    await next.remove()
    await engine.removeImage(third.id)
    expect(await engine.image(tag)).toBeUndefined()
  }, 120_000)
})
