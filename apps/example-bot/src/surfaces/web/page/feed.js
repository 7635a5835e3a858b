/** Follows the server's events and comes back when the line drops; every line starts with a snapshot. */

/**
 * @param {{ headers: Record<string, string>, onEvent: (type: string, data: any) => void,
 *   onState: (state: 'open' | 'waiting' | 'refused', message?: string) => void }} options
 */
export async function follow({ headers, onEvent, onState }) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
    try {
      const response = await fetch('/api/events', { headers })
      if (response.status === 403) {
        const body = await response.json()
        onState('refused', body.error.message)
        return
      }
      if (response.ok) {
        onState('open')
        pause = 250
        await read(response.body, onEvent)
      }
    } catch {
      // The line dropped, or the bot is gone: come back below.
    }
    onState('waiting')
    await new Promise((done) => setTimeout(done, pause))
  }
}

/** Reads `event:` and `data:` lines; the server sends one of each, then a blank line. */
async function read(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    text += value
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      emit(text.slice(0, end), onEvent)
      text = text.slice(end + 2)
    }
  }
}

function emit(block, onEvent) {
  const fields = new Map(
    block.split('\n').map((line) => {
      const at = line.indexOf(': ')
      return [line.slice(0, at), line.slice(at + 2)]
    }),
  )
  const data = fields.get('data')
  if (data !== undefined) onEvent(fields.get('event') ?? 'message', JSON.parse(data))
}
