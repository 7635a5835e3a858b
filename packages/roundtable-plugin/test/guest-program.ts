import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Writes a guest program of the test's own, in place of ours. `body` is JavaScript with these at hand:
 * `call(method, path, { headers, body })` resolving to `{ status, json }`; `hello()` resolving to the worker nonce;
 * `take(nonce)` resolving to the acknowledged turn; `post(nonce, turn, result)`; `spend(turn, path, body)` for
 * model and tool calls.
 */
export function guestProgram(directory: string, body: string): string {
  const path = join(directory, 'guest.mjs')
  writeFileSync(path, `${PRELUDE}\n${body}\n`, { mode: 0o644 })
  return path
}

const PRELUDE = `
import { request } from 'node:http'
const at = process.argv.indexOf('--socket')
const socketPath = at === -1 ? '/run/sandbox/worker.sock' : process.argv[at + 1]
const call = (method, path, { headers = {}, body } = {}) =>
  new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const all = { host: 'broker', ...headers }
    if (text !== undefined) Object.assign(all, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    const sent = request({ socketPath, method, path, headers: all, agent: false, setDefaultHeaders: false }, (answer) => {
      const chunks = []
      answer.on('data', (chunk) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        const whole = Buffer.concat(chunks).toString()
        let json
        try { json = JSON.parse(whole) } catch {}
        resolve({ status: answer.statusCode, json })
      })
    })
    sent.on('error', reject)
    sent.end(text)
  })
const none = '0'.repeat(16)
const posture = {
  runtime: 'test', uid: process.getuid(), gid: process.getgid(), groups: [],
  capabilities: { inheritable: none, permitted: none, effective: none, bounding: none, ambient: none },
  noNewPrivs: false, seccomp: 0, interfaces: ['lo'], routes: [], rootReadOnly: false, mounts: [], environment: [], namespaces: [],
}
const hello = async (protocol = 1) =>
  (await call('POST', '/worker/hello', { body: { protocol, mode: 'sealed', posture } })).json?.workerNonce
const worker = (nonce) => ({ 'x-sandbox-worker': nonce })
const take = async (nonce) => {
  const turn = (await call('GET', '/worker/next', { headers: worker(nonce) })).json
  await call('POST', '/worker/ack', { headers: worker(nonce), body: { turnId: turn.turnId } })
  return turn
}
const post = (nonce, turn, result) =>
  call('POST', '/worker/result', { headers: worker(nonce), body: { turnId: turn.turnId, result } })
const spend = (turn, path, body) =>
  call('POST', path, { headers: { 'x-sandbox-turn': turn.nonce, authorization: 'Bearer sandbox-dummy-key' }, body })
const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
`
