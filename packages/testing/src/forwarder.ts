import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A loopback port whose connections all go to a Unix socket, as the forwarder in a container does it. */
export interface Forwarder extends AsyncDisposable {
  readonly url: string
}

/** Starts a forwarder. */
export async function openForwarder(socketPath: string): Promise<Forwarder> {
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const guest = connect(socketPath)
    for (const [from, to] of [
      [client, guest],
      [guest, client],
    ] as const) {
      open.add(from)
      from.on('error', () => {})
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
      from.pipe(to)
    }
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy()
      await new Promise<void>((done) => server.close(() => done()))
    },
  }
}
