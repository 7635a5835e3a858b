import { BROKER_HOST } from '@sandbox/protocol'
import { CallRefusal } from '../../src/engine/call/refusal.ts'
import {
  checkHeaderNames,
  checkHost,
  checkMethod,
  checkPlaceholder,
  type HeadPolicy,
  readHead,
} from '../../src/engine/call/request-head.ts'
import type { Random } from '../random.ts'
import { type FuzzTarget, hold } from '../target.ts'

const PLACEHOLDER = 'placeholder'
const NAMES = [
  ...['host', 'Host', 'authorization', 'Authorization', 'content-length', 'Content-Length', 'content-type'],
  ...['transfer-encoding', 'Transfer-Encoding', 'connection', 'upgrade', 'expect', 'te', 'trailer', 'cookie'],
  ...[
    'accept',
    'user-agent',
    'x-stainless-os',
    'x-api-key',
    'content-encoding',
    'x-sandbox-turn',
    'keep-alive',
  ],
]
const VALUES = [
  ...['broker', 'localhost', '127.0.0.1:80', '[::1]:9', 'evil.example', 'localhost.evil.example', ''],
  ...[`Bearer ${PLACEHOLDER}`, 'Bearer sk-real', '0', '12', '-1', '+5', '1e3', '0x10', '9'.repeat(20), ' 7'],
  ...[
    'chunked',
    'Chunked',
    'gzip, chunked',
    'identity',
    'close',
    'keep-alive',
    'close, x-api-key',
    'upgrade',
  ],
]
const TARGETS = [
  '/model',
  '/model?a=1',
  '/model#x',
  'http://evil.example/model',
  '*',
  '',
  '//evil/model',
  '/%2e',
]
const POLICIES: readonly HeadPolicy[] = [
  {
    method: 'POST',
    headers: new Set(['host', 'content-length', 'content-type', 'authorization', 'x-sandbox-turn']),
    placeholder: PLACEHOLDER,
  },
  { method: 'POST', headers: 'any', placeholder: PLACEHOLDER },
]

/** What a request may be that every check admitted, told anew from the raw header list. */
export const head: FuzzTarget = {
  name: 'head',
  about: 'request line and headers: what the checks admit',
  run(random) {
    const policy = random.pick(POLICIES)
    const made = request(random)
    try {
      const read = readHead(made)
      checkMethod(read, policy)
      checkHeaderNames(read, policy)
      checkPlaceholder(read, policy)
      checkHost(read, policy)
    } catch (error) {
      hold(error instanceof CallRefusal, `the checks threw ${error}`, made.rawHeaders)
      return
    }
    admitted(made, policy)
  },
}

function request(random: Random) {
  const rawHeaders = random.list(random.once(50) ? 130 : 6, () => [
    random.once(12) ? random.text(8) : random.pick(NAMES),
    random.once(12) ? random.text(8) : random.pick(VALUES),
  ])
  return {
    method: random.once(8) ? random.pick(['GET', 'post', '', 'CONNECT']) : 'POST',
    target: random.once(4) ? `/${random.text(8)}` : random.pick(TARGETS),
    rawHeaders: rawHeaders.flat(),
    body: (async function* () {})(),
    signal: new AbortController().signal,
  }
}

function admitted(made: ReturnType<typeof request>, policy: HeadPolicy): void {
  const found = made.rawHeaders
  const all = (name: string) => found.filter((_, at) => at % 2 === 1 && found[at - 1]?.toLowerCase() === name)
  hold(made.method === 'POST', 'another method was admitted', made.method)
  hold(/^\/[!-~]*$/.test(made.target) && !/[?#]/.test(made.target), 'this target was admitted', made.target)
  hold(all('host').length <= 1 && all('authorization').length <= 1, 'it came twice', found)
  for (const host of all('host')) {
    const local = policy.headers === 'any' && /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host)
    hold(host === BROKER_HOST || local, 'this host was admitted', found)
  }
  hold(
    all('content-length').every((length) => /^\d{1,15}$/.test(length)),
    'this length was admitted',
    found,
  )
  if (policy.headers === 'any') {
    const framed = all('transfer-encoding')
    hold(framed.length + all('content-length').length <= 1, 'two framings were admitted', found)
    hold(
      framed.every((coding) => coding.toLowerCase() === 'chunked'),
      'a coding was admitted',
      found,
    )
    for (const name of ['upgrade', 'expect', 'te', 'trailer']) hold(all(name).length === 0, name, found)
    return
  }
  for (let at = 0; at < found.length; at += 2) {
    const name = (found[at] as string).toLowerCase()
    hold(policy.headers.has(name) && all(name).length === 1, `header ${name} was admitted`, found)
  }
  for (const given of all('authorization')) hold(given === `Bearer ${PLACEHOLDER}`, 'a credential', found)
}
