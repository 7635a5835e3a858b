import { describe, expect, test } from 'vitest'
import { type AnswerState, HttpAnswer } from './http-answer.ts'

const counted = 'HTTP/1.1 200 OK\r\nContent-Length: 8\r\nx-odd:\r\n\r\n{"ü":1}'
const chunked =
  'HTTP/1.1 429 \r\ntransfer-encoding: Chunked\r\n\r\n3;x="y"\r\n{"\u00c3\r\n5\r\n\u00bc":1}\r\n0\r\nx-trailer: 1\r\n\r\n'
const interim = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nlink: </a>\r\n\r\n${counted}`

/** Bytes as they are on the wire: the chunked sample cuts a character in two. */
const bytes = (text: string) => Buffer.from(text, text === chunked ? 'latin1' : 'utf8')

/** The state after the last piece; pieces after a final state are not sent. */
function read(pieces: readonly Buffer[], maxBytes = 1000): { answer: HttpAnswer; state: AnswerState } {
  const answer = new HttpAnswer(maxBytes)
  let state: AnswerState = 'more'
  for (const piece of pieces) if (state === 'more') state = answer.push(piece)
  return { answer, state }
}

describe('HttpAnswer', () => {
  test.each([
    ['a counted body', counted, 200],
    ['a chunked body', chunked, 429],
    ['an answer behind interim ones', interim, 200],
  ])('%s is the same wherever it is cut', (_, text, status) => {
    const whole = bytes(text)
    for (let at = 0; at <= whole.length; at++) {
      const { answer, state } = read([whole.subarray(0, at), whole.subarray(at)])
      expect([state, answer.status, answer.text(), answer.reusable], `cut at ${at}`).toEqual([
        'done',
        status,
        '{"ü":1}',
        true,
      ])
    }
    const each = [...whole].map((byte) => Buffer.from([byte]))
    expect(read(each).answer.text()).toBe('{"ü":1}')
    expect(read(each.slice(0, -1)).state).toBe('more')
  })

  test('no body at all, and an empty one', () => {
    expect(read([Buffer.from('HTTP/1.1 204 X\r\n\r\n')])).toMatchObject({ state: 'done' })
    const { answer, state } = read([Buffer.from('HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n')])
    expect([state, answer.text()]).toEqual(['done', ''])
  })

  test('a connection that closes, or has bytes behind the answer, carries no other request', () => {
    const closing = counted.replace('x-odd:', 'connection: x, Close')
    expect(read([Buffer.from(closing)]).answer.reusable).toBe(false)
    expect(read([Buffer.from(`${counted}x`)]).answer.reusable).toBe(false)
    expect(read([Buffer.from(counted.replace('x-odd:', 'connection: keep-alive'))]).answer.reusable).toBe(
      true,
    )
  })

  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['another version', 'HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n'],
    ['a status that is none', 'HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n'],
    ['a change of protocol', 'HTTP/1.1 101 X\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 X\r\ncontent-length: 1\r\nContent-Length: 1\r\n\r\n1'],
    ['a length and chunks', 'HTTP/1.1 200 X\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1'],
    ['a length that is none', 'HTTP/1.1 200 X\r\ncontent-length: -1\r\n\r\n'],
    ['another coding', 'HTTP/1.1 200 X\r\ntransfer-encoding: gzip, chunked\r\n\r\n'],
    ['no length', 'HTTP/1.1 200 X\r\n\r\n{}'],
    ['a folded header', 'HTTP/1.1 200 X\r\nx: a\r\n b\r\ncontent-length: 0\r\n\r\n'],
    ['a space before the colon', 'HTTP/1.1 200 X\r\ncontent-length : 0\r\n\r\n'],
    ['a size that is none', 'HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\nx\r\n'],
    ['a chunk that goes on', 'HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n1\r\n12\r\n'],
    ['a head without an end', `HTTP/1.1 200 X\r\nx: ${'x'.repeat(20_000)}`],
    [
      'a size line without an end',
      `HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n1;${'x'.repeat(2000)}`,
    ],
  ])('%s is broken', (_, text) => {
    expect(read([Buffer.from(text, 'latin1')]).state).toBe('broken')
  })

  test('more than the limit is too large as soon as it is known', () => {
    expect(read([Buffer.from('HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n')], 8).state).toBe('too_large')
    const chunks = 'HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n'
    expect(read([Buffer.from(`${chunks}4\r\n`)], 8).state).toBe('too_large')
    expect(read([Buffer.from(`${chunks}3\r\n`)], 8).state).toBe('more')
    expect(read([Buffer.from(counted)], 8).state).toBe('done')
  })
})
