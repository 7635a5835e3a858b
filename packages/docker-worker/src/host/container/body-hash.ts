import { createHash } from 'node:crypto'
import { LABELS, type SealedCreateBody } from './sealed-spec.ts'

/**
 * A hash of the settings that a container is created with, hexadecimal: two containers with equal hashes have equal
 * walls and limits. What differs from worker to worker is left out (labels, directories, whether the workspace can be
 * written), and so is the image, whose id is compared by itself. Pure.
 */
export function bodyHash(body: SealedCreateBody): string {
  const { Image: _image, Labels: _labels, HostConfig, ...settings } = body
  const { Mounts, ...host } = HostConfig
  const mounts = Mounts.map(({ Source: _source, ReadOnly: _readOnly, ...mount }) => mount)
  const text = JSON.stringify({ ...settings, HostConfig: host, Mounts: mounts })
  return createHash('sha256').update(text).digest('hex')
}

/** The same body, with its hash as a label of the container. */
export function withBodyHash(body: SealedCreateBody): SealedCreateBody {
  return { ...body, Labels: { ...body.Labels, [LABELS.body]: bodyHash(body) } }
}
