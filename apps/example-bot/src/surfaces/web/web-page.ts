import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { serve } from '@hono/node-server'
import { BotError } from '../../errors.ts'
import { type WebAppOptions, webApp } from './web-app.ts'

/** Options of the page. */
export interface WebPageOptions extends Omit<WebAppOptions, 'token'> {
  /** 0 means any free port. */
  readonly port: number
}

/** The page while it is served. */
export interface WebPage {
  /** To be opened by the person who started the bot: it holds the token, after the `#`, which is never sent. */
  readonly address: string
  readonly port: number
  readonly token: string
  /** Ends every connection. Idempotent. */
  close(): Promise<void>
}

/**
 * Serves the page on 127.0.0.1, with a token that is new at every start.
 *
 * @throws BotError `page` when the port cannot be had.
 */
export async function openWebPage(options: WebPageOptions): Promise<WebPage> {
  const token = randomBytes(24).toString('base64url')
  const app = webApp({ ...options, token })
  const server = await listen(app.fetch, options.port)
  const at = server.address()
  const port = typeof at === 'object' && at !== null ? at.port : options.port
  return {
    address: `http://127.0.0.1:${port}/#${token}`,
    port,
    token,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

function listen(fetch: (request: Request) => Response | Promise<Response>, port: number): Promise<Server> {
  return new Promise((done, fail) => {
    const server = serve({ fetch, hostname: '127.0.0.1', port, overrideGlobalObjects: false }, () =>
      done(server),
    ) as Server
    server.once('error', (error: NodeJS.ErrnoException) =>
      fail(
        new BotError(
          'page',
          error.code === 'EADDRINUSE'
            ? `Port ${port} of 127.0.0.1 is taken: choose another with --port, or leave --port out.`
            : `The page cannot be served on 127.0.0.1:${port} (${error.code ?? 'unknown'}).`,
          { cause: error },
        ),
      ),
    )
  })
}
