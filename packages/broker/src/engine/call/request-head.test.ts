import { describe, expect, test } from 'vitest'
import { checkMethod, readHead } from './request-head.ts'

function head(target: string, rawHeaders: readonly string[] = []) {
  return readHead({
    method: 'POST',
    target,
    rawHeaders,
    body: (async function* () {})(),
    signal: new AbortController().signal,
  })
}

const invalid = expect.objectContaining({ reason: 'request_invalid' })

describe('LS-11 and decision 9: what no route may ever see, whatever headers it admits', () => {
  test.each([
    'http://broker/model',
    'HTTPS://evil.example/model',
    'broker:80',
    '*',
    '@evil/model',
    'model',
    '',
    '/mod el',
    '/model\t',
    '/model\0',
    '/mod\u00e9l',
    '/model\u{1f600}',
  ])('the target %j', (target) => {
    expect(() => head(target)).toThrow(invalid)
  })
  test.each([
    ['host', 'broker', 'Host', 'broker'],
    ['HOST', 'broker', 'host', 'evil'],
    ['authorization', 'Bearer a', 'Authorization', 'Bearer a'],
  ])('a second %s', (...rawHeaders) => {
    expect(() => head('/model', rawHeaders)).toThrow(invalid)
  })
  test.each(['', '-1', '+1', '1.0', '0x1', '1, 1', '1e3', '9'.repeat(16)])('the length %j', (length) => {
    expect(() => head('/model', ['Content-Length', length])).toThrow(invalid)
  })
})

test('a hundred headers, and not one more', () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => [`x-${at}`, '1']).flat()
  expect(head('/', many(100)).headers.size).toBe(100)
  expect(() => head('/', many(101))).toThrow(invalid)
})

test('the path stays as it was sent, and a query or a fragment is told apart', () => {
  expect(head('/x/../%6dodel')).toMatchObject({ path: '/x/../%6dodel', bare: true })
  expect(head('/model?a#b')).toMatchObject({ path: '/model', bare: false })
  expect(head('/model#')).toMatchObject({ path: '/model', bare: false })
})

test('names in lower case, values as sent, repeated names noted', () => {
  const found = head('/model', ['Accept', 'A', 'CONTENT-LENGTH', '12', 'accept', 'B', '__proto__', 'x'])
  expect([...found.headers.keys()]).toEqual(['accept', 'content-length', '__proto__'])
  expect([...found.repeated]).toEqual(['accept'])
  expect(found.contentLength).toBe(12)
})

test('PB-05 a query that is listed passes as it is spelt, and no other', () => {
  const policy = { method: 'POST', headers: 'any', placeholder: 'x', queries: ['?beta=true'] } as const
  const check = (target: string) => () => checkMethod(head(target), policy)
  expect(check('/v1/messages?beta=true')).not.toThrow()
  expect(check('/v1/messages')).not.toThrow()
  for (const query of [
    '?',
    '?beta=false',
    '?beta=true&x=1',
    '?beta=tru%65',
    '#',
    '?beta=true#',
    '#?beta=true',
  ]) {
    expect(check(`/v1/messages${query}`)).toThrow(expect.objectContaining({ reason: 'not_found' }))
  }
})
