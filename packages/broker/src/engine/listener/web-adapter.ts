import type { AnswerStream, BrokerHandler, BrokerRequest } from '../call/exchange.ts'
import { CallRefusal } from '../call/refusal.ts'

/**
 * Answers a web `Request` without a socket. What a `Request` cannot express (two headers of one name, framing)
 * is not checked here. Never rejects when the handler does not.
 */
export async function handleWebRequest(handler: BrokerHandler, request: Request): Promise<Response> {
  const guest = new AbortController()
  const onAbort = () => guest.abort(new CallRefusal('aborted'))
  request.signal.addEventListener('abort', onAbort)
  if (request.signal.aborted) onAbort()
  const answer = await handler(fromWeb(request, guest.signal))
  const { status, headers, body } = answer
  const ended = (sent: boolean) => {
    request.signal.removeEventListener('abort', onAbort)
    if (!sent) onAbort()
    answer.ended(sent)
  }
  if (!(body instanceof Uint8Array)) return new Response(toWeb(body, ended), { status, headers })
  // The whole body is handed over with the Response: it has gone out as far as a broker can tell.
  ended(true)
  return new Response(Uint8Array.from(body), { status, headers })
}

function toWeb(body: AnswerStream, ended: (sent: boolean) => void): ReadableStream<Uint8Array> {
  const reader = body[Symbol.asyncIterator]()
  return new ReadableStream({
    pull: async (sink) => {
      try {
        const next = await reader.next()
        if (next.done !== true) return sink.enqueue(Uint8Array.from(next.value))
        ended(true)
        sink.close()
      } catch (error) {
        ended(false)
        sink.error(error)
      }
    },
    cancel: () => {
      ended(false)
      void Promise.resolve(reader.return?.()).catch(() => {})
    },
  })
}

function fromWeb(request: Request, signal: AbortSignal): BrokerRequest {
  const url = new URL(request.url)
  return {
    method: request.method,
    target: url.pathname + url.search + url.hash,
    rawHeaders: [...request.headers].flat(),
    body: bodyOf(request),
    signal,
  }
}

async function* bodyOf(request: Request): AsyncGenerator<Uint8Array> {
  if (request.body === null) return
  const reader = request.body.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.releaseLock()
  }
}
