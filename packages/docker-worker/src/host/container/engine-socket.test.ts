import { expect, test } from 'vitest'
import { engineSocketPath } from './engine-socket.ts'

test('W-58 a local socket is taken, nothing means the default', () => {
  expect(engineSocketPath({})).toBe('/var/run/docker.sock')
  expect(engineSocketPath({ DOCKER_HOST: '' })).toBe('/var/run/docker.sock')
  expect(engineSocketPath({ DOCKER_HOST: 'unix:///srv/engine.sock' })).toBe('/srv/engine.sock')
})

test.each([
  'tcp://user:pass@10.0.0.1:2376',
  'ssh://me@host',
  'unix://relative',
  'npipe:////./pipe/x',
  '10.0.0.1',
])('W-58 %s is refused, without repeating what may be a password', (host) => {
  expect(() => engineSocketPath({ DOCKER_HOST: host })).toThrow(
    expect.objectContaining({ code: 'engine_remote', message: expect.not.stringContaining('pass@') }),
  )
})
