import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dockerSocket, tempDir } from '@sandbox/testing'
import { buildImage } from '../host/image/build-image.ts'
import { TINY_GUEST } from './tiny-guest.ts'

/** The engine of the Docker tests. */
export const ENGINE = dockerSocket() ?? '/nonexistent'

/** Builds the image of the tiny guest for the runtime that runs the tests, and returns its name. */
export async function tinyImage(engineSocket = ENGINE): Promise<string> {
  using dir = tempDir()
  const bundle = join(dir.path, 'guest.mjs')
  writeFileSync(bundle, TINY_GUEST)
  const tag = `sandbox-test-tiny:${process.versions.bun ? 'bun' : 'node'}`
  await buildImage({ tag, engineSocket, bundle })
  return tag
}
