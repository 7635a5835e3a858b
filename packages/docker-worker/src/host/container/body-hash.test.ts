import { expect, test } from 'vitest'
import { resolveLimits } from '../../resolve-options.ts'
import { bodyHash, withBodyHash } from './body-hash.ts'
import { LABELS, type SealedSpec, sealedCreateBody } from './sealed-spec.ts'

const SPEC: SealedSpec = {
  worker: {
    workerId: '0'.repeat(16),
    channelHash: 'a'.repeat(64),
    epoch: '1',
    runDir: '/srv/run/a',
    workspaceDir: '/srv/bot/a',
  },
  installId: 'install-1',
  imageId: 'sha256:1',
  runtime: 'node',
  user: { uid: 1000, gid: 1000 },
  limits: resolveLimits(),
}
const hashOf = (spec: SealedSpec) => bodyHash(sealedCreateBody(spec))

test('W-63 workers of one kind have one hash, whichever channel, directory and image', () => {
  const worker = {
    workerId: '1'.repeat(16),
    channelHash: 'b'.repeat(64),
    epoch: '2',
    runDir: '/srv/run/b',
    workspaceDir: '/srv/bot/b',
    workspaceReadOnly: true,
  }
  expect(hashOf(SPEC)).toMatch(/^[0-9a-f]{64}$/)
  expect(hashOf({ ...SPEC, worker, installId: 'install-2', imageId: 'sha256:2' })).toBe(hashOf(SPEC))
})

test('W-63 every field of the create body that is a setting changes the hash', () => {
  const body = sealedCreateBody(SPEC)
  const { Image, Labels, HostConfig, ...settings } = body
  const { Mounts, ...host } = HostConfig
  const hashes = [
    bodyHash(body),
    ...Object.keys(settings).map((name) => bodyHash({ ...body, [name]: 'changed' })),
    ...Object.keys(host).map((name) =>
      bodyHash({ ...body, HostConfig: { ...HostConfig, [name]: 'changed' } }),
    ),
    bodyHash({ ...body, HostConfig: { ...HostConfig, Mounts: [...Mounts, ...Mounts.slice(0, 1)] } }),
    bodyHash({ ...body, HostConfig: { ...HostConfig, Sysctls: {} } as typeof HostConfig }),
  ]
  expect(new Set(hashes).size).toBe(hashes.length)
  expect(hashes.length).toBeGreaterThan(30)
  expect([Image, Labels[LABELS.worker]]).toEqual(['sha256:1', '0'.repeat(16)])
})

test('the label is the hash, and changes nothing else', () => {
  const body = sealedCreateBody(SPEC)
  const labelled = withBodyHash(body)
  expect(labelled).toEqual({ ...body, Labels: { ...body.Labels, 'sandbox.body': bodyHash(body) } })
  expect(bodyHash(labelled)).toBe(bodyHash(body))
})
