import { describe, expect, test } from 'vitest'
import type { WorkerGuest } from '../options.ts'
import type { EngineImage, EngineInfo } from './container/docker-client.ts'
import {
  engineFindings,
  engineRuntimeName,
  imageFindings,
  requireFindings,
  runtimeFinding,
} from './engine-check.ts'

const INFO: EngineInfo = {
  apiVersion: 'v1.41',
  engineVersion: '20.10.24',
  operatingSystem: 'Debian',
  osType: 'linux',
  cgroupDriver: 'systemd',
  securityOptions: ['name=apparmor', 'name=seccomp,profile=default'],
  missingLimits: [],
  runtimes: ['runc'],
}

describe('engineFindings', () => {
  test('takes an engine that enforces everything', () => {
    expect(engineFindings(INFO).filter(({ ok }) => !ok)).toEqual([])
  })

  test.each<[string, Partial<EngineInfo>]>([
    ['linux', { operatingSystem: 'Docker Desktop' }],
    ['linux', { osType: 'windows' }],
    ['seccomp', { securityOptions: ['name=apparmor'] }],
    ['same-ids', { securityOptions: ['name=seccomp,profile=default', 'name=rootless'] }],
    ['same-ids', { securityOptions: ['name=seccomp,profile=default', 'name=userns'] }],
    ['limits', { cgroupDriver: 'none' }],
    ['limits', { missingLimits: ['PidsLimit'] }],
  ])('refuses for %s: %j', (id, change) => {
    const bad = engineFindings({ ...INFO, ...change }).filter(({ ok }) => !ok)
    expect(bad.map((finding) => finding.id)).toEqual([id])
    expect(() => requireFindings(bad)).toThrow(expect.objectContaining({ code: 'engine_unsuitable' }))
  })
})

test.each([
  ['runc', ['runc'], 'runc'],
  ['runsc', ['runc', 'runsc'], 'runsc'],
  ['kata', ['kata-runtime', 'runc'], 'kata-runtime'],
  ['runsc', ['runc'], undefined],
  ['kata', [], undefined],
] as const)('runtime %s of %j is %s', (wanted, runtimes, name) => {
  const info = { ...INFO, runtimes }
  expect(engineRuntimeName(info, wanted)).toBe(name)
  const finding = runtimeFinding(info, wanted)
  expect(finding).toMatchObject({ id: 'runtime', ok: name !== undefined, code: 'engine_unsuitable' })
  if (name === undefined) expect(finding.mend).toContain('daemon.json')
})

describe('imageFindings', () => {
  const image: EngineImage = {
    id: 'sha256:1',
    labels: { 'sandbox.protocol': '1', 'sandbox.runtime': 'node' },
    environment: ['PATH=/bin'],
    volumes: [],
    tags: [],
    layers: [],
  }
  const firstBad = (found: EngineImage | undefined) => imageFindings('img:1', found).find(({ ok }) => !ok)

  test('takes an image of ours', () => expect(firstBad(image)).toBeUndefined())

  test('a missing image names the command that makes it', () => {
    expect(firstBad(undefined)).toMatchObject({
      code: 'image_missing',
      mend: 'Make it with "sandbox-worker build --tag img:1".',
    })
  })

  test('decision 8: another protocol names both versions and the command', () => {
    const bad = firstBad({ ...image, labels: { ...image.labels, 'sandbox.protocol': '7' } })
    expect(bad).toMatchObject({ code: 'image_protocol' })
    expect(bad?.detail).toMatch(/protocol 7.*protocol 1.*sandbox-worker build/)
  })

  test('an image that is none of ours is refused', () => {
    expect(firstBad({ ...image, labels: {} })).toMatchObject({ code: 'image_protocol' })
  })

  test('decision 8: an image of another guest is refused by name, before a container is made', () => {
    const pi = { ...image, labels: { ...image.labels, 'sandbox.guest': 'pi' } }
    const bad = (found: EngineImage, guest: WorkerGuest) =>
      imageFindings('img:1', found, guest).find(({ ok }) => !ok)
    expect(bad(pi, 'pi')).toBeUndefined()
    expect(bad(image, 'pi')).toMatchObject({
      code: 'image_unsuitable',
      detail: 'The image holds the guest sealed, not pi.',
      mend: 'Make it with "sandbox-worker build --pi --tag img:1".',
    })
    expect(bad(pi, 'sealed')).toMatchObject({ detail: 'The image holds the guest pi, not sealed.' })
    const both = { ...image, labels: { ...image.labels, 'sandbox.precheck': '1' } }
    expect([bad(both, 'precheck'), bad(both, 'sealed')]).toEqual([undefined, undefined])
    expect(bad(image, 'precheck')).toMatchObject({
      code: 'image_unsuitable',
      detail: 'The image holds the guest sealed, not precheck.',
      mend: 'Make it with "sandbox-worker build --tag img:1".',
    })
  })

  test.each<[string, Partial<EngineImage>]>([
    ['variables', { environment: ['HTTPS_PROXY=http://user:pass@proxy'] }],
    ['volumes', { volumes: ['/data'] }],
    ['an unknown runtime', { labels: { 'sandbox.protocol': '1' } }],
  ])('DD-07 an image with %s is refused, without its values', (_what, change) => {
    const bad = firstBad({ ...image, ...change })
    expect(bad).toMatchObject({ code: 'image_unsuitable' })
    expect(bad?.detail).not.toContain('pass')
  })
})
