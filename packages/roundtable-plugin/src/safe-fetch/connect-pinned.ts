import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { SafeFetchError } from './errors.ts'
import { portOf, type VettedUrl } from './vet-url.ts'

/** For TCP and TLS together. */
const CONNECT_MS = 3_000

/** Another address of the same name may do better. Anything else, a bad certificate say, is the answer. */
const NEXT = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'ETIMEDOUT',
])

/**
 * Connects to one of the vetted addresses, in their order; nothing is looked up again. With https the certificate has
 * to be that of the name.
 * @throws SafeFetchError `unreachable`, or the reason of `signal`
 */
export async function connectPinned(
  { url, addresses }: VettedUrl,
  { ca, signal }: { readonly ca?: string | undefined; readonly signal: AbortSignal },
): Promise<Socket> {
  let last: unknown
  for (const address of addresses) {
    signal.throwIfAborted()
    try {
      return await connectOnce(url, address, ca, signal)
    } catch (error) {
      signal.throwIfAborted()
      last = error
      if (!NEXT.has((error as NodeJS.ErrnoException).code ?? '')) break
    }
  }
  throw new SafeFetchError('unreachable', `There is no connection to ${url.host}.`, { cause: last })
}

function connectOnce(
  url: URL,
  address: string,
  ca: string | undefined,
  signal: AbortSignal,
): Promise<Socket> {
  const secure = url.protocol === 'https:'
  const where = { host: address, port: portOf(url) }
  // A name in SNI and in the certificate; a number is never sent in SNI, and is checked in the certificate as it is.
  const named = isIP(url.hostname.replace(/^\[(.*)\]$/, '$1')) === 0 ? { servername: url.hostname } : {}
  const trusted = ca === undefined ? {} : { ca }
  const socket = secure
    ? connectTls({ ...where, ...named, ...trusted, ALPNProtocols: ['http/1.1'] })
    : connectTcp(where)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => fail(timedOut()), CONNECT_MS)
    const abort = () => fail(signal.reason)
    const fail = (error: unknown) => {
      settle()
      socket.on('error', () => {})
      socket.destroy()
      reject(error)
    }
    const settle = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      socket.removeListener('error', fail)
    }
    signal.addEventListener('abort', abort, { once: true })
    socket.once('error', fail)
    socket.once(secure ? 'secureConnect' : 'connect', () => {
      settle()
      // Nobody else listens yet; whoever gets the socket looks whether it is destroyed.
      socket.on('error', () => socket.destroy())
      resolve(socket)
    })
  })
}

function timedOut(): Error {
  return Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })
}
