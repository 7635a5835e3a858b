import { readFile } from 'node:fs/promises'
import { IMAGE_FILES } from '../container/sealed-spec.ts'
import { guestFile, requireBundle } from './guest-bundle.ts'
import type { ImageGuest } from './image-archive.ts'

/** The sealed guest and the program of prechecks as one layer: a file each. */
export async function sealedGuest(bundlePath: string): Promise<ImageGuest> {
  const file = async (path: string, source: string) => ({
    path: path.slice(1),
    mode: 0o644,
    content: await readFile(source),
  })
  return {
    kind: 'sealed',
    entry: IMAGE_FILES.bundle,
    layers: [
      [
        await file(IMAGE_FILES.bundle, bundlePath),
        await file(IMAGE_FILES.precheck, await requireBundle(guestFile('precheck.js'))),
      ],
    ],
  }
}
