/** Most bytes that may wait for a reader before it is dropped; it comes back and gets a fresh snapshot. */
const WAITING_BYTES = 16 * 1024 * 1024

/** Sends one event; false when the reader is gone or too slow. */
export type SendEvent = (type: string, data: unknown) => void

/**
 * A server-sent event stream (HTML Living Standard, 9.2). `open` is called when it is read and returns what
 * ends the subscription; that is called once, when the reader leaves or is dropped.
 */
export function eventFeed(open: (send: SendEvent) => () => void): Response {
  const encoder = new TextEncoder()
  let close = (): void => {}
  let over = false
  const end = (): void => {
    if (over) return
    over = true
    close()
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const send: SendEvent = (type, data) => {
          if (over) return
          if ((controller.desiredSize ?? 0) <= 0) {
            end()
            controller.error(new TypeError('the reader is too slow'))
            return
          }
          controller.enqueue(encoder.encode(`event: ${type}\ndata: ${JSON.stringify(data)}\n\n`))
        }
        close = open(send)
      },
      cancel: end,
    },
    new ByteLengthQueuingStrategy({ highWaterMark: WAITING_BYTES }),
  )
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}
