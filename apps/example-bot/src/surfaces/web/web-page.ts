import { randomBytes } from 'node:crypto'
import type { Server } from 'node:http'
import { serve } from '@hono/node-server'
import { BotError } from '../../errors.ts'
import { type WebAppOptions, webApp } from './web-app.ts'

const LOOPBACK = '127.0.0.1'
/** 24 random bytes as Base64. */
const TOKEN_CHARS = 32

/** Options of the page. */
export interface WebPageOptions extends Omit<WebAppOptions, 'token'> {
  /** 0 means any free port. */
  readonly port: number
  /** An IP address to listen on; default 127.0.0.1. Any other puts the page in reach of other machines. */
  readonly listenOn?: string
  /** At least 32 characters; default: a new one at every start. A page that is open comes back only to its own. */
  readonly token?: string
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
 * Serves the page on 127.0.0.1 unless told otherwise.
 *
 * @throws BotError `page` when the port cannot be had.
 */
export async function openWebPage(options: WebPageOptions): Promise<WebPage> {
  const { listenOn = LOOPBACK, token = randomBytes(24).toString('base64url') } = options
  if (token.length < TOKEN_CHARS) {
    throw new BotError(
      'page',
      `The token of the page has ${token.length} characters: it needs ${TOKEN_CHARS}.`,
    )
  }
  const name = options.hostNames?.[0] ?? (listenOn.includes(':') ? `[${listenOn}]` : listenOn)
  const app = webApp({ ...options, token, hostNames: [name, ...(options.hostNames ?? [])] })
  const server = await listen(app.fetch, listenOn, options.port)
  const at = server.address()
  const port = typeof at === 'object' && at !== null ? at.port : options.port
  return {
    address: `http://${name}:${port}/#${token}`,
    port,
    token,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

function listen(
  fetch: (request: Request) => Response | Promise<Response>,
  hostname: string,
  port: number,
): Promise<Server> {
  return new Promise((done, fail) => {
    const server = serve({ fetch, hostname, port, overrideGlobalObjects: false }, () =>
      done(server),
    ) as Server
    server.once('error', (error: NodeJS.ErrnoException) =>
      fail(
        new BotError(
          'page',
          error.code === 'EADDRINUSE'
            ? `Port ${port} of ${hostname} is taken: choose another with --port, or leave --port out.`
            : `The page cannot be served on ${hostname}, port ${port} (${error.code ?? 'unknown'}).`,
          { cause: error },
        ),
      ),
    )
  })
}
