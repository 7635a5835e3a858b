/** Follows the server's events and comes back when the line drops; every line starts with a snapshot. */

/** How the line to the server is: `refused` is for good. */
export type LinkState = 'connecting' | 'open' | 'waiting' | 'refused'

interface FollowOptions {
  readonly headers: Readonly<Record<string, string>>
  onEvent(type: string, data: unknown): void
  onState(state: LinkState, message?: string): void
}

/** The server's beat comes every 10 s: after three without one, the line is dead, as after a sleep. */
const SILENT_MS = 30_000
/** A browser has few lines to one server: a page that nobody sees gives its line up. */
const HIDDEN_MS = 30_000
const PAUSES_MS = [250, 500, 1_000, 2_000, 4_000, 8_000]

/** Follows until the server refuses. Never rejects. */
export async function follow(options: FollowOptions): Promise<void> {
  for (let failures = 0; ; ) {
    await visible()
    const answer = await once(options)
    if (answer === 'refused') return
    failures = answer === 'served' ? 0 : failures + 1
    options.onState('waiting')
    await pause(PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)] ?? 0)
  }
}

/** One line, from its first byte until it drops. */
async function once({ headers, onEvent, onState }: FollowOptions): Promise<'served' | 'failed' | 'refused'> {
  const line = new AbortController()
  const watch = watchLine(line)
  let served = false
  try {
    const response = await fetch('/api/events', { headers, signal: line.signal })
    if (response.status === 403) {
      onState('refused', await refusalOf(response))
      return 'refused'
    }
    if (!response.ok || response.body === null) return 'failed'
    onState('open')
    served = true
    await readEvents(response.body, watch.alive, onEvent)
  } catch {
    // The line dropped, or the bot is gone: the caller comes back.
  } finally {
    watch.end()
  }
  return served ? 'served' : 'failed'
}

/** Ends a line that is silent for too long, or that nobody looks at. */
function watchLine(line: AbortController) {
  let silent: ReturnType<typeof setTimeout> | undefined
  let hidden: ReturnType<typeof setTimeout> | undefined
  const alive = (): void => {
    clearTimeout(silent)
    silent = setTimeout(() => line.abort(), SILENT_MS)
  }
  const look = (): void => {
    clearTimeout(hidden)
    if (document.visibilityState === 'hidden') hidden = setTimeout(() => line.abort(), HIDDEN_MS)
  }
  const drop = (): void => line.abort()
  alive()
  look()
  document.addEventListener('visibilitychange', look)
  window.addEventListener('online', drop)
  return {
    alive,
    end(): void {
      clearTimeout(silent)
      clearTimeout(hidden)
      document.removeEventListener('visibilitychange', look)
      window.removeEventListener('online', drop)
      line.abort()
    },
  }
}

/** Reads `event:` and `data:` lines; the server sends one of each, then a blank line. */
async function readEvents(
  body: ReadableStream<Uint8Array>,
  alive: () => void,
  onEvent: FollowOptions['onEvent'],
): Promise<void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    alive()
    text += decoder.decode(value, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      // Not `.`, which stops at U+2028 too: that may stand inside of a JSON string.
      const [, type, data] = /^event: ([^\n]*)\ndata: ([^\n]*)$/.exec(block) ?? []
      if (type !== undefined && data !== undefined) onEvent(type, JSON.parse(data))
    }
  }
}

async function refusalOf(response: Response): Promise<string> {
  const body = (await response.json()) as { error?: { message?: string } }
  return body.error?.message ?? 'The bot refused this page.'
}

function visible(): Promise<void> {
  return new Promise((done) => {
    const look = (): void => {
      if (document.visibilityState === 'hidden') return
      document.removeEventListener('visibilitychange', look)
      done()
    }
    document.addEventListener('visibilitychange', look)
    look()
  })
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms))
}
