import type { Server } from 'node:http'
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { BotError } from '../errors.ts'
import { knownHost } from '../surfaces/web/request-guard.ts'

/** How the bot is. */
export interface Health {
  readonly status: 'ok' | 'failing' | 'stopping'
  /** What was looked at; for what is wrong a sentence without paths, since anybody who reaches the port may read it. */
  readonly checks: Readonly<Record<string, string>>
}

/** Options of {@link openMonitor}. */
export interface MonitorOptions {
  /** 0 means any free port. */
  readonly port: number
  /** IP address; default 127.0.0.1. */
  readonly listenOn?: string
  readonly health: () => Promise<Health>
  readonly metrics: () => string
}

/** The monitor while it is served. */
export interface Monitor {
  readonly address: string
  /** Ends every connection. Idempotent. */
  close(): Promise<void>
}

/** Addresses that only this machine reaches. */
const LOOPBACK = /^(127(\.\d{1,3}){3}|::1)$/

/**
 * Serves `/healthz` (200 when all is well, else 503) and `/metrics` (Prometheus), for programs that watch the bot.
 * On loopback it answers to loopback names alone, as the page does; elsewhere to whatever name leads there.
 *
 * @throws BotError `monitor` when the port cannot be had.
 */
export async function openMonitor(options: MonitorOptions): Promise<Monitor> {
  const { listenOn = '127.0.0.1', port, health, metrics } = options
  const name = listenOn.includes(':') ? `[${listenOn}]` : listenOn
  const app = new Hono()
  if (LOOPBACK.test(listenOn)) app.use(knownHost([name]))
  app.get('/healthz', async (context) => {
    const told = await health()
    return context.json(told, told.status === 'ok' ? 200 : 503)
  })
  app.get('/metrics', (context) =>
    context.text(metrics(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
  )
  const server = await listen(app, listenOn, port)
  const at = server.address()
  const bound = typeof at === 'object' && at !== null ? at.port : port
  return {
    address: `http://${name}:${bound}`,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

function listen(app: Hono, hostname: string, port: number): Promise<Server> {
  return new Promise((done, fail) => {
    const server = serve({ fetch: app.fetch, hostname, port, overrideGlobalObjects: false }, () =>
      done(server),
    ) as Server
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const code = cause.code ?? 'unknown error'
      const mend = code === 'EADDRINUSE' ? 'It is taken: choose another.' : 'Look at "monitor".'
      const sentence = `The monitor cannot listen on port ${port} of ${hostname} (${code}). ${mend}`
      fail(new BotError('monitor', sentence, { cause }))
    })
  })
}
