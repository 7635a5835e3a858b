import { expect, test } from 'vitest'
import { PROTOCOL_VERSION, protocolMismatch } from './capabilities.ts'
import { isWorkerHello, type WorkerHello } from './worker-hello.ts'

const hello: WorkerHello = {
  protocol: PROTOCOL_VERSION,
  mode: 'sealed',
  posture: {
    runtime: 'node v24.21.0',
    uid: 1000,
    gid: 1000,
    groups: [],
    capabilities: { inheritable: '0', permitted: '0', effective: '0', bounding: '0', ambient: '0' },
    noNewPrivs: true,
    seccomp: 2,
    interfaces: ['lo'],
    routes: [],
    rootReadOnly: true,
    mounts: [{ target: '/', type: 'overlay', options: 'ro' }],
    environment: ['PATH'],
    namespaces: ['net:[1]'],
  },
}

test('a hello of this or of another version is a hello: the host compares versions itself', () => {
  expect(isWorkerHello(hello)).toBe(true)
  expect(isWorkerHello({ ...hello, protocol: 999 })).toBe(true)
})

test('limits and sockets may be left out, as older workers do, and null is no limit', () => {
  const limits = {
    memoryBytes: 1,
    swapBytes: 0,
    cpus: 0.5,
    pids: null,
    openFiles: null,
    fileBytes: null,
    coreBytes: null,
    tmpBytes: null,
  }
  const posture = { ...hello.posture, limits, sockets: ['/run/sandbox/worker.sock'] }
  expect(isWorkerHello({ ...hello, posture })).toBe(true)
  expect(isWorkerHello({ ...hello, posture: { ...posture, limits: { ...limits, pids: -1 } } })).toBe(false)
  expect(isWorkerHello({ ...hello, posture: { ...posture, limits: { pids: 1 } } })).toBe(false)
  expect(isWorkerHello({ ...hello, posture: { ...posture, sockets: Array(65).fill('x') } })).toBe(false)
})

test.each([
  ['no posture', { ...hello, posture: undefined }],
  ['an unknown mode', { ...hello, mode: 'root' }],
  ['a version that is no number', { ...hello, protocol: '1' }],
  [
    'more mounts than any container has',
    { ...hello, posture: { ...hello.posture, mounts: Array(257).fill(hello.posture.mounts[0]) } },
  ],
  ['a capability mask that is no hex', { ...hello, posture: { ...hello.posture, capabilities: {} } }],
])('%s is no hello', (_what, value) => {
  expect(isWorkerHello(value)).toBe(false)
})

test('decision 8: the refusal names both versions and the command that mends it', () => {
  const text = protocolMismatch(7)
  expect(text).toContain('protocol 7')
  expect(text).toContain(`protocol ${PROTOCOL_VERSION}`)
  expect(text).toContain('sandbox-worker build')
})
