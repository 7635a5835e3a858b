import { CredentialError } from '@sandbox/credential-scope'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { BotError } from '../../errors.ts'
import type { Explain } from '../../ledger.ts'
import { payerWords } from '../payer-words.ts'
import type { Room } from '../room.ts'
import { pageFiles } from './page-files.ts'
import { knownHost, pageHeaders, refusal, sameOrigin, tokenGuard } from './request-guard.ts'
import { channelsOn, type FeedOptions, roomFeed } from './room-feed.ts'

/** A message has at most 32,000 UTF-16 code units, as JSON at most six bytes each. */
const BODY_BYTES = 256 * 1024

/** What the page is a view of. */
export interface WebAppOptions extends FeedOptions {
  readonly explain: Explain
  /** Ends the turn that runs in a channel; false when none does. */
  readonly stop: (channel: string) => boolean
  /** Of this start, or kept by the operator; carried by every request to `/api/`. */
  readonly token: string
  /** Names that the page answers to besides those of this machine, without port. */
  readonly hostNames?: readonly string[]
}

/**
 * The page and its routes. Everything is checked in one order: host name, origin, token, size, content.
 */
export function webApp(options: WebAppOptions): Hono {
  const app = new Hono()
  app.use(pageHeaders, knownHost(options.hostNames))
  app.use('/api/*', sameOrigin, tokenGuard(options.token))
  app.use(
    '/api/*',
    bodyLimit({
      maxSize: BODY_BYTES,
      onError: (context) => context.json(refusal('body_too_large', 'The message is too long.'), 413),
    }),
  )
  for (const file of pageFiles()) {
    app.get(file.path, (context) => context.body(file.body, 200, { 'content-type': file.type }))
  }
  app.get('/api/events', () => roomFeed(options))
  app.get('/api/key', (context) => {
    const { channel = '', speaker = '' } = context.req.query()
    return context.json(keyOf(options, channel, speaker))
  })
  app.post('/api/messages', async (context) => {
    const said = message(await json(context.req.raw))
    if (said === undefined) {
      return context.json(refusal('body_invalid', 'channel, speaker and text are strings.'), 400)
    }
    return context.json(options.room.post(said), 202)
  })
  app.post('/api/stop', async (context) => {
    const body = await json(context.req.raw)
    const channel = typeof body?.channel === 'string' ? body.channel : ''
    return context.json({ stopped: known(options.room, channel) && options.stop(channel) })
  })
  app.post('/api/sandbox', async (context) => {
    const { channel, on } = (await json(context.req.raw)) ?? {}
    if (typeof channel !== 'string' || typeof on !== 'boolean') {
      return context.json(refusal('body_invalid', 'channel is a string, on is true or false.'), 400)
    }
    return context.json(await turn(options, channel, on))
  })
  app.get('/api/files/:id', (context) => {
    const file = options.room.file(context.req.param('id'))
    if (file === undefined) return context.json(refusal('not_found', 'This file is not kept any more.'), 404)
    return context.body(new Uint8Array(file.data), 200, {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.name.toWellFormed())}`,
    })
  })
  app.notFound((context) => context.json(refusal('not_found', 'There is nothing here.'), 404))
  app.onError((error, context) =>
    BotError.isInstance(error) && error.code === 'message'
      ? context.json(refusal('message_refused', error.message), 422)
      : context.json(refusal('internal', 'The page failed.'), 500),
  )
  return app
}

function keyOf({ room, explain }: WebAppOptions, channel: string, speakerId: string): object {
  const speaker = room.channels
    .find((known) => known.key === channel)
    ?.speakers.find((known) => known.id === speakerId)
  if (speaker === undefined) throw new BotError('message', 'There is no such channel or speaker.')
  try {
    const told = explain({ channel, speaker })
    const { rule, source, fingerprint } = told
    return {
      rule: rule ?? null,
      source: source ?? null,
      fingerprint: fingerprint ?? null,
      // A rule without a key: it leads to none, or is asked when somebody speaks.
      ...(rule !== undefined && fingerprint === undefined ? { problem: payerWords(told) } : {}),
    }
  } catch (error) {
    if (!CredentialError.isInstance(error)) throw error
    return { rule: null, source: null, fingerprint: null, problem: error.message }
  }
}

async function turn({ room, sandbox }: WebAppOptions, channel: string, on: boolean): Promise<object> {
  const key = room.channels.find((one) => one.key === channel)?.key
  if (key === undefined || sandbox === undefined) throw new BotError('message', 'There is no such channel.')
  return { told: await sandbox.set(key, on), on: channelsOn({ room, sandbox }) }
}

function known(room: Room, channel: string): boolean {
  return room.channels.some((one) => one.key === channel)
}

async function json(request: Request): Promise<Record<string, unknown> | undefined> {
  try {
    const value: unknown = await request.json()
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function message(body: Record<string, unknown> | undefined) {
  const { channel, speaker, text } = body ?? {}
  if (typeof channel !== 'string' || typeof speaker !== 'string' || typeof text !== 'string') return undefined
  return { channel, speakerId: speaker, text }
}
