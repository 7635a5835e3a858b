import { request } from 'node:http'
import { expect, test } from 'vitest'
import { type Monitor, openMonitor } from './monitor.ts'

const open = (listenOn?: string): Promise<Monitor> =>
  openMonitor({
    port: 0,
    ...(listenOn === undefined ? {} : { listenOn }),
    health: async () => ({ status: 'ok', checks: { engine: 'ok' } }),
    metrics: () => 'bot_turns_total 1\n',
  })

/** The status of a request that names this host; `fetch` would not let it. */
function statusOf(address: string, path: string, host: string): Promise<number | undefined> {
  const { hostname, port } = new URL(address)
  return new Promise((done, fail) => {
    const sent = request(
      { host: hostname.replaceAll(/[[\]]/g, ''), port, path, headers: { host }, agent: false },
      (answer) => {
        answer.resume()
        answer.on('end', () => done(answer.statusCode))
      },
    )
    sent.on('error', fail)
    sent.end()
  })
}

test.each(['/healthz', '/metrics'])('on loopback %s answers to loopback names alone', async (path) => {
  const monitor = await open()
  try {
    const { port } = new URL(monitor.address)
    for (const name of [`127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', '[::1]:1']) {
      expect(await statusOf(monitor.address, path, name)).toBe(200)
    }
    for (const name of [
      'evil.example',
      `evil.example:${port}`,
      'localhost.evil.example',
      '127.0.0.1.evil.example',
    ]) {
      expect(await statusOf(monitor.address, path, name)).toBe(403)
    }
  } finally {
    await monitor.close()
  }
})

test('another loopback address answers to itself, too', async () => {
  const monitor = await open('127.0.0.2')
  try {
    expect(await statusOf(monitor.address, '/healthz', '127.0.0.2')).toBe(200)
    expect(await statusOf(monitor.address, '/healthz', 'evil.example')).toBe(403)
  } finally {
    await monitor.close()
  }
})

test('elsewhere it answers to whatever name leads there', async () => {
  const monitor = await open('0.0.0.0')
  try {
    const here = monitor.address.replace('0.0.0.0', '127.0.0.1')
    expect(await statusOf(here, '/metrics', 'bot.internal:9464')).toBe(200)
  } finally {
    await monitor.close()
  }
})
