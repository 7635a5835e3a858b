import { expect, test } from 'vitest'
import { jsonLog, textLog } from './log.ts'

const key = 'sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123'

test('JSON lines have time, level, message and facts, and no key', () => {
  const lines: string[] = []
  const log = jsonLog(
    (line) => lines.push(line),
    () => new Date(0),
  )
  log.line('The bot runs.')
  log.line('WARNING: no sandbox')
  log.logger.error({ channel: 'room:a', err: new TypeError(`broken\n${key}`) }, 'turn failed')
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { time: '1970-01-01T00:00:00.000Z', level: 'info', message: 'The bot runs.' },
    { time: '1970-01-01T00:00:00.000Z', level: 'warn', message: 'no sandbox' },
    {
      time: '1970-01-01T00:00:00.000Z',
      level: 'error',
      message: 'turn failed',
      channel: 'room:a',
      err: expect.stringMatching(/^broken\n/),
    },
  ])
  expect(lines.join('')).not.toContain('abcdefghij')
  expect(lines.every((line) => !line.includes('\n'))).toBe(true)
})

test('lines for people show no control characters and no key', () => {
  const lines: string[] = []
  textLog((line) => lines.push(line)).logger.warn(
    { said: `\u001b[2J ${key}`, more: { text: `x\n${key}` } },
    'what the worker said',
  )
  expect(lines[0]).toMatch(/^what the worker said: said /)
  expect(lines[0]).not.toContain('\u001b')
  expect(lines[0]).not.toContain('abcdefghij')
})
