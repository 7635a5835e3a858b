import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { tempDir } from '@sandbox/testing'
import { expect, onTestFinished, test } from 'vitest'
import { createSafeFetcher } from './safe-fetch.ts'

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

/** A TLS service behind one that adds a broken record to what the service says first. Its port and certificate. */
async function brokenAfterHello(): Promise<{ port: number; ca: string }> {
  using dir = tempDir()
  const [key, cert] = [join(dir.path, 'key.pem'), join(dir.path, 'cert.pem')]
  const kind = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=site.test'
  const named = ['-addext', 'subjectAltName=DNS:site.test', '-keyout', key, '-out', cert]
  execFileSync('openssl', [...kind.split(' '), ...named], { stdio: 'ignore' })
  const ca = readFileSync(cert, 'utf8')
  const service = createTlsServer({ key: readFileSync(key), cert: ca }, (socket) =>
    socket.on('error', () => {}),
  )
  service.on('tlsClientError', () => {})
  const behind = await listening(service)
  const broken = Buffer.concat([Buffer.from([0x17, 3, 3, 0, 32]), Buffer.alloc(32, 7)])
  const front = createServer((client) => {
    const upstream = connect(behind, '127.0.0.1')
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => {}).on('close', () => other.destroy())
    }
    client.on('data', (bytes) => upstream.write(bytes))
    upstream.once('data', (bytes) => {
      client.write(Buffer.concat([bytes, broken]))
      upstream.on('data', (more) => client.write(more))
    })
  })
  return { port: await listening(front), ca }
}

test('SF-08 a connection that breaks in the moment in which it is made is an error at once, and is not waited for', async () => {
  const { port, ca } = await brokenAfterHello()
  const network = { resolve: async () => ['127.0.0.1'], ownAddresses: () => [], isPublic: () => true, ca }
  const asked = createSafeFetcher(network).safeFetch(`https://site.test:${port}/`, {
    ports: [port],
    timeoutMs: 3_000,
  })
  await expect(asked).rejects.toMatchObject({ code: 'unreachable' })
})
