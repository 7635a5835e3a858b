import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dockerGate, tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { runCommand } from '../../command/run-command.ts'
import { ENGINE } from '../../testing/tiny-image.ts'
import { connectEngine } from '../container/docker-client.ts'
import { IMAGE_FILES } from '../container/sealed-spec.ts'
import { buildImage } from './build-image.ts'

describe.skipIf(!dockerGate())('buildImage on a real engine', () => {
  test('decision 22: equal inputs are one image, built once; other inputs are another', async () => {
    using dir = tempDir()
    const [one, same, other] = ['one', 'same', 'other'].map((name) => join(dir.path, `${name}.mjs`)) as [
      string,
      string,
      string,
    ]
    writeFileSync(one, `console.log(${process.pid})`)
    writeFileSync(same, `console.log(${process.pid})`)
    writeFileSync(other, 'console.log(0)')
    const lines: string[] = []
    const build = (bundle: string) =>
      buildImage({
        tag: 'sandbox-test-build',
        engineSocket: ENGINE,
        bundle,
        onProgress: (line) => lines.push(line),
      })
    const first = await build(one)
    expect(first.tag).toBe('sandbox-test-build:latest')
    expect(first.contentHash).toMatch(/^[0-9a-f]{64}$/)
    expect(await build(same)).toEqual({ ...first, built: false })
    const changed = await build(other)
    expect(changed.built).toBe(true)
    expect(changed.contentHash).not.toBe(first.contentHash)
    expect(changed.id).not.toBe(first.id)
    // The engine has the first one no more: it is built again, and is the same to the bit.
    expect(await build(one)).toEqual(first)
    expect(lines.join('\n')).toMatch(/runtime .*content .*loading .*up to date/s)
    const image = await (await connectEngine(ENGINE)).image('sandbox-test-build:latest')
    expect(image?.labels).toEqual({
      'sandbox.protocol': '1',
      'sandbox.precheck': '1',
      'sandbox.runtime': process.versions.bun ? 'bun' : 'node',
      'sandbox.runtime.version': process.versions.bun ?? process.versions.node,
      'sandbox.content': first.contentHash,
    })
    expect([image?.environment, image?.volumes]).toEqual([[], []])
  })

  test('there is nothing in it but the runtime, its libraries and the guest: no shell, no package manager, no certificate', async () => {
    await buildImage({ tag: 'sandbox-test-files', engineSocket: ENGINE })
    const lists = `
      const { lstatSync, readdirSync } = require('node:fs')
      const files = []
      const walk = (path) => {
        for (const name of readdirSync(path || '/')) {
          const own = path + '/' + name
          if (['/dev', '/proc', '/sys', '/run/sandbox', '/workspace', '/tmp'].includes(own)) continue
          if (lstatSync(own).isDirectory()) walk(own)
          else files.push(own)
        }
      }
      walk('')
      console.log(JSON.stringify(files))`
    using dir = tempDir()
    const out: Buffer[] = []
    const args = ['run', '--image', 'sandbox-test-files', '--run-dir', dir.path, '--socket', ENGINE]
    const code = await runCommand([...args, '--', IMAGE_FILES.runtime, '-e', lists], {
      env: {},
      signal: new AbortController().signal,
      out: () => {},
      progress: () => {},
      write: (_stream, chunk) => out.push(Buffer.from(chunk)),
    })
    expect(code).toBe(0)
    const files = JSON.parse(Buffer.concat(out).toString()) as string[]
    const engines = [
      '/etc/hostname',
      '/etc/hosts',
      '/etc/resolv.conf',
      '/sbin/docker-init',
      '/.dockerenv',
      '/etc/mtab',
    ]
    const others = files.filter(
      (path) => !engines.includes(path) && !/\/(?:lib\S*\.so[.\d]*|ld-\S+)$/.test(path),
    )
    expect(others.sort()).toEqual(Object.values(IMAGE_FILES).sort())
  })

  test.each([0, 50])('a build that is called off %i ms into loading leaves no image', async (delayMs) => {
    using dir = tempDir()
    const bundle = join(dir.path, 'guest.mjs')
    const mark = randomBytes(8).toString('hex')
    writeFileSync(bundle, `console.log('${mark}')`)
    const stop = new AbortController()
    const callOff = () => (delayMs === 0 ? stop.abort() : setTimeout(() => stop.abort(), delayMs))
    const building = buildImage({
      tag: `sandbox-test-${mark}:1`,
      engineSocket: ENGINE,
      bundle,
      signal: stop.signal,
      onProgress: (line) => line.startsWith('loading') && callOff(),
    })
    await expect(building).rejects.toMatchObject({ code: 'aborted' })
    expect(await (await connectEngine(ENGINE)).image(`sandbox-test-${mark}:1`)).toBeUndefined()
  })

  test('a name may have a registry, a path and a version', async () => {
    const named = await buildImage({ tag: 'localhost:5000/a/b-c__d.e:V1.0_x', engineSocket: ENGINE })
    expect(named.tag).toBe('localhost:5000/a/b-c__d.e:V1.0_x')
    await (await connectEngine(ENGINE)).removeImage(named.tag)
  })

  test('bad input is refused by name', async () => {
    await expect(buildImage({ tag: '-x', engineSocket: ENGINE })).rejects.toMatchObject({
      code: 'options_invalid',
    })
    await expect(buildImage({ engineSocket: ENGINE, runtime: '/bin/ls' })).rejects.toMatchObject({
      code: 'runtime_unsuitable',
    })
    await expect(buildImage({ engineSocket: ENGINE, bundle: '/nothing.js' })).rejects.toMatchObject({
      code: 'bundle_missing',
    })
  })
})
