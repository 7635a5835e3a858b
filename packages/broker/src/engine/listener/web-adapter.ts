import type { BrokerHandler, BrokerRequest } from '../call/exchange.ts'

/**
 * Answers a web `Request` without a socket. What a `Request` cannot express (two headers of one name, framing)
 * is not checked here. Never rejects when the handler does not.
 */
export async function handleWebRequest(handler: BrokerHandler, request: Request): Promise<Response> {
  const answer = await handler(fromWeb(request))
  // The whole body is handed over with the Response: it has gone out as far as a broker can tell.
  answer.ended(true)
  return new Response(Uint8Array.from(answer.body), { status: answer.status, headers: answer.headers })
}

function fromWeb(request: Request): BrokerRequest {
  const url = new URL(request.url)
  return {
    method: request.method,
    target: url.pathname + url.search + url.hash,
    rawHeaders: [...request.headers].flat(),
    body: bodyOf(request),
    signal: request.signal,
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
