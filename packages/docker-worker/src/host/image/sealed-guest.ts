import { readFile } from 'node:fs/promises'
import { IMAGE_FILES } from '../container/sealed-spec.ts'
import type { ImageGuest } from './image-archive.ts'

/** The sealed guest as one layer: its one file. */
export async function sealedGuest(bundlePath: string): Promise<ImageGuest> {
  const path = IMAGE_FILES.bundle.slice(1)
  return {
    kind: 'sealed',
    entry: IMAGE_FILES.bundle,
    layers: [[{ path, mode: 0o644, content: await readFile(bundlePath) }]],
  }
}
