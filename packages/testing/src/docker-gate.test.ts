import { afterEach, expect, test } from 'vitest'
import { dockerGate, dockerSocket } from './docker-gate.ts'

const before = { ...process.env }

afterEach(() => {
  for (const name of ['SANDBOX_DOCKER_SOCKET', 'SANDBOX_REQUIRE_DOCKER']) {
    if (before[name] === undefined) delete process.env[name]
    else process.env[name] = before[name]
  }
})

test('a named socket opens the gate', () => {
  process.env.SANDBOX_DOCKER_SOCKET = '/run/engine/docker.sock'
  expect(dockerSocket()).toBe('/run/engine/docker.sock')
  expect(dockerGate()).toBe(true)
})

test('without an engine the gate is shut, and an error when Docker is required', () => {
  delete process.env.SANDBOX_DOCKER_SOCKET
  delete process.env.SANDBOX_REQUIRE_DOCKER
  if (dockerSocket() !== undefined) return
  expect(dockerGate()).toBe(false)
  process.env.SANDBOX_REQUIRE_DOCKER = '1'
  expect(() => dockerGate()).toThrow(/SANDBOX_DOCKER_SOCKET/)
})
