/**
 * The smallest guest, for tests of the drivers: it imports `program.mjs` from the directory of its socket, so that one
 * image plays every part. A program finds `guest.socket`, `guest.workspace` and `guest.report(value)`, which posts
 * `value` as JSON to the socket and resolves when it was taken.
 */
export const TINY_GUEST = `
import { request } from 'node:http'
import { pathToFileURL } from 'node:url'
const option = (name, otherwise) => {
  const at = process.argv.indexOf(name)
  return at < 0 ? otherwise : process.argv[at + 1]
}
const socket = option('--socket', '/run/sandbox/worker.sock')
const workspace = option('--workspace', '/workspace')
const report = (value) => new Promise((resolve, reject) => {
  const body = JSON.stringify(value)
  const headers = { host: 'broker', 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
  const call = request({ socketPath: socket, method: 'POST', path: '/worker/hello', headers }, (answer) => {
    answer.resume()
    answer.on('end', () => resolve(answer.statusCode))
  })
  call.on('error', reject)
  call.end(body)
})
globalThis.guest = { socket, workspace, report }
await import(new URL('program.mjs', pathToFileURL(socket)))
`
