import { DriverError } from '@sandbox/docker-worker'
import { describe, expect, test } from 'vitest'
import { readConfig, USAGE } from './config.ts'
import { BotError } from './errors.ts'

const read = (line: string, env: NodeJS.ProcessEnv = {}) =>
  readConfig(line === '' ? [] : line.split(' '), env)
const refusal = (line: string): string => {
  try {
    read(line)
  } catch (error) {
    if (BotError.isInstance(error) && error.code === 'usage') return error.message
    throw error
  }
  return 'not refused'
}

describe('command line', () => {
  test('no word and no flag serves on any port, driver by itself', () => {
    expect(read('')).toEqual({
      command: 'serve',
      where: { driver: 'auto' },
      port: 0,
      json: false,
      colour: true,
    })
  })

  test('flags of the demo', () => {
    expect(read('--driver docker --port=8080 --state /tmp/x --image a:b', { NO_COLOR: '1' })).toEqual({
      command: 'serve',
      where: { driver: 'docker', image: 'a:b' },
      port: 8080,
      stateDir: '/tmp/x',
      json: false,
      colour: false,
    })
    expect(read('--json')).toMatchObject({ command: 'serve', json: true })
    expect(read('--check --json --driver process')).toEqual({
      command: 'check',
      where: { driver: 'process' },
      json: true,
      colour: true,
    })
  })

  test('a relative state directory is made absolute', () => {
    expect(read('--state here')).toMatchObject({ stateDir: `${process.cwd()}/here` })
  })

  test('keys check and keys explain', () => {
    expect(read('keys check')).toEqual({ command: 'keys-check' })
    expect(read('keys explain --channel demo:team --speaker u-ann')).toEqual({
      command: 'keys-explain',
      channel: 'demo:team',
      speaker: 'u-ann',
    })
  })

  test('commands of an operator', () => {
    const path = `${process.cwd()}/bot.jsonc`
    expect(read('--config bot.jsonc', { SANDBOX_DOCKER_SOCKET: '/a.sock' })).toEqual({
      command: 'bot',
      path,
      engineSocket: '/a.sock',
      json: false,
      colour: true,
    })
    expect(read('--config bot.jsonc --json')).toMatchObject({ command: 'bot', json: true })
    expect(read('doctor --call --json')).toEqual({ command: 'doctor', path, call: true, json: true })
    expect(read('init --dir /srv/bot --provider openai --key env:KEY --port 9 --yes')).toEqual({
      command: 'init',
      dir: '/srv/bot',
      provider: 'openai',
      key: 'env:KEY',
      port: 9,
      yes: true,
    })
    expect(read('keys check --config bot.jsonc')).toEqual({ command: 'keys-check', path })
  })

  test('help wins, and names every flag', () => {
    expect(read('--help --check')).toEqual({ command: 'help' })
    expect(read('-h')).toEqual({ command: 'help' })
    const operator = [
      '--config',
      '--dir',
      '--provider',
      '--url',
      '--model',
      '--mode',
      '--key',
      '--owner',
      '--yes',
    ]
    const demo = ['--driver', '--check', '--json', '--port', '--state', '--image', '--channel', '--speaker']
    for (const flag of [...demo, ...operator, '--call']) {
      expect(USAGE).toContain(flag)
    }
  })

  test('an engine of the environment is taken as configured, SANDBOX_DOCKER_SOCKET first', () => {
    const host = 'unix:///b.sock'
    const socket = (line: string, env: NodeJS.ProcessEnv) => {
      const config = read(line, env)
      return config.command === 'serve' ? config.where.engineSocket : undefined
    }
    expect(socket('', { SANDBOX_DOCKER_SOCKET: '/a.sock', DOCKER_HOST: host })).toBe('/a.sock')
    expect(socket('', { SANDBOX_DOCKER_SOCKET: 'unix:///a.sock' })).toBe('/a.sock')
    expect(socket('', { SANDBOX_DOCKER_SOCKET: '', DOCKER_HOST: host })).toBe('/b.sock')
    expect(socket('--driver process', { DOCKER_HOST: 'tcp://10.0.0.1' })).toBeUndefined()
    expect(() => read('', { SANDBOX_DOCKER_SOCKET: 'a.sock' })).toThrow('is an absolute path')
    expect(() => read('', { DOCKER_HOST: 'tcp://10.0.0.1' })).toThrow(DriverError)
  })

  test.each([
    ['--colour', 'There is no flag --colour.'],
    ['--constructor', 'There is no flag --constructor.'],
    ['-x', 'There is no flag -x.'],
    ['run', 'There is no command "run".'],
    ['keys', '"keys" is followed by "check" or "explain".'],
    ['keys check now', '"now" is one word too many.'],
    ['keys explain', '"keys explain" needs --channel'],
    ['keys check --port 1', '--port does not go with "keys check".'],
    ['init --json', '--json does not go with "init".'],
    ['--yes', '--yes goes with "init".'],
    ['--config x --port 1', '--port does not go with --config: it stands in the configuration.'],
    ['doctor --port 1', '--port does not go with "doctor".'],
    ['doctor now', '"now" is one word too many.'],
    ['keys check --config x --state y', '--config and --state do not go together.'],
    ['--check --port 1', '--port does not go with --check.'],
    ['--speaker u', '--speaker goes with "keys explain".'],
    ['--driver', '--driver needs a value.'],
    ['--driver --json', '--driver needs a value.'],
    ['--driver auto', '--driver is "docker" or "process", not "auto".'],
    ['--driver podman', '--driver is "docker" or "process", not "podman".'],
    ['--driver process --image x', '--image does not go with --driver process'],
    ['--port 65536', '--port is a number from 0 to 65535, not "65536".'],
    ['--port -1', '--port is a number from 0 to 65535, not "-1".'],
    ['--port 1 --port 2', '--port is given twice.'],
    ['--check=yes', '--check takes no value.'],
    ['--state=', '--state needs a value.'],
  ])('%s is refused with a sentence', (line, sentence) => {
    expect(refusal(line)).toContain(sentence)
    expect(refusal(line)).toContain('See --help.')
  })
})
