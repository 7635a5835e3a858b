import { chatText, type ScriptedUpstream, scriptedUpstream, type UpstreamScript } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { type MessagesGateway, openMessagesGateway } from './messages-gateway.ts'

const request = { model: 'm', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }

async function open(script: UpstreamScript, auth?: string) {
  const service = await scriptedUpstream(script)
  const settings = { api: 'openai' as const, url: `${service.url}/v1`, model: 'm', ...(auth && { auth }) }
  const other = { api: 'anthropic' as const, url: service.url, model: 'm' }
  const gateway = await openMessagesGateway({ providers: { own: settings, other } })
  return {
    service,
    gateway,
    ask: (body: object, path = '/v1/messages', name = 'own') => ask(gateway, name, body, path),
    [Symbol.asyncDispose]: async () => {
      await gateway.close()
      await (service as ScriptedUpstream)[Symbol.asyncDispose]()
    },
  }
}

function ask(gateway: MessagesGateway, name: string, body: object, path: string): Promise<Response> {
  return fetch(`${gateway.urlOf(name)}${path}`, {
    method: 'POST',
    headers: { 'x-api-key': 'sk-own-0123456789' },
    body: JSON.stringify(body),
  })
}

function streams(...pieces: (object | string)[]): UpstreamScript {
  return (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const piece of pieces) {
      response.write(`: keep alive\n\ndata: ${typeof piece === 'string' ? piece : JSON.stringify(piece)}\n\n`)
    }
    response.end()
    return undefined
  }
}

const delta = (content: object, finish_reason: string | null = null) => ({
  model: 'm',
  choices: [{ delta: content, finish_reason }],
})

async function eventsOf(response: Response) {
  const blocks = (await response.text()).trim().split('\n\n')
  return blocks.map((block) => JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? ''))
}

test('a stream with words and two calls becomes the events of a Messages stream', async () => {
  const call = (index: number, more: object) => ({ tool_calls: [{ index, ...more }] })
  await using own = await open(
    streams(
      delta({ role: 'assistant', content: '' }),
      delta({ content: 'Let ' }),
      delta({ content: 'me see.' }),
      delta(call(0, { id: 'c1', function: { name: 'clock', arguments: '' } })),
      delta(call(0, { function: { arguments: '{"a"' } })),
      delta(call(0, { function: { arguments: ':1}' } })),
      delta(call(1, { id: 'c2', function: { name: 'map', arguments: '{}' } }), 'tool_calls'),
      {
        choices: [],
        usage: { prompt_tokens: 9, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 4 } },
      },
      '[DONE]',
    ),
  )
  const events = await eventsOf(await own.ask({ ...request, stream: true }))
  expect(
    events.map(({ type, index, content_block, delta: part }) => [type, index, content_block ?? part]),
  ).toEqual([
    ['message_start', undefined, undefined],
    ['content_block_start', 0, { type: 'text', text: '' }],
    ['content_block_delta', 0, { type: 'text_delta', text: 'Let ' }],
    ['content_block_delta', 0, { type: 'text_delta', text: 'me see.' }],
    ['content_block_stop', 0, undefined],
    ['content_block_start', 1, { type: 'tool_use', id: 'c1', name: 'clock', input: {} }],
    ['content_block_delta', 1, { type: 'input_json_delta', partial_json: '{"a"' }],
    ['content_block_delta', 1, { type: 'input_json_delta', partial_json: ':1}' }],
    ['content_block_stop', 1, undefined],
    ['content_block_start', 2, { type: 'tool_use', id: 'c2', name: 'map', input: {} }],
    ['content_block_delta', 2, { type: 'input_json_delta', partial_json: '{}' }],
    ['content_block_stop', 2, undefined],
    ['message_delta', undefined, { stop_reason: 'tool_use', stop_sequence: null }],
    ['message_stop', undefined, undefined],
  ])
  expect(events.at(-2)?.usage).toEqual({ input_tokens: 5, output_tokens: 5, cache_read_input_tokens: 4 })
})

test('a service that does not stream is told as events all the same, or as a whole when that was asked for', async () => {
  await using own = await open(() => chatText('hello'))
  const events = await eventsOf(await own.ask({ ...request, stream: true }))
  expect(events.map(({ type }) => type)).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
  expect(await (await own.ask(request)).json()).toMatchObject({
    type: 'message',
    role: 'assistant',
    content: [{ type: 'text', text: 'hello' }],
    stop_reason: 'end_turn',
  })
})

test('a stream that breaks off, or is no JSON, ends with an error and never with an invented end', async () => {
  for (const script of [streams(delta({ content: 'Hal' })), streams(delta({ content: 'Hal' }), '{"oops')]) {
    await using own = await open(script)
    const events = await eventsOf(await own.ask({ ...request, stream: true }))
    expect(events.at(-1)).toEqual({
      type: 'error',
      error: { type: 'api_error', message: 'The answer broke off.' },
    })
    expect(events.map(({ type }) => type)).not.toContain('message_stop')
  }
})

test('the key goes where the provider wants it, and only to the provider', async () => {
  await using bearer = await open(() => chatText('x'))
  await bearer.ask(request)
  expect(bearer.service.seen[0]?.headers).toMatchObject({ authorization: 'Bearer sk-own-0123456789' })
  expect(bearer.service.seen[0]?.headers['x-api-key']).toBe(undefined)
  await using header = await open(() => chatText('x'), 'api-key')
  await header.ask(request)
  expect(header.service.seen[0]?.headers['api-key']).toBe('sk-own-0123456789')
  expect(header.service.seen[0]?.headers.authorization).toBe(undefined)
})

test('decision 17: a redirect is an error, its target hears nothing', async () => {
  await using target = await scriptedUpstream(() => chatText('x'))
  await using own = await open((_, response) => {
    response.writeHead(307, { location: target.url }).end()
    return undefined
  })
  expect((await own.ask(request)).status).toBe(502)
  expect(target.seen).toEqual([])
})

test('a refusal keeps its status and back-off; of a refused key nothing is repeated', async () => {
  const refuse =
    (status: number): UpstreamScript =>
    (_, response) => {
      response.writeHead(status, { 'retry-after': '7' }).end('no, sk-own-0123456789')
      return undefined
    }
  await using limited = await open(refuse(429))
  const slow = await limited.ask(request)
  expect([slow.status, slow.headers.get('retry-after')]).toEqual([429, '7'])
  expect(await slow.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } })
  await using wrong = await open(refuse(401))
  const text = await (await wrong.ask(request)).text()
  expect(text).toContain('authentication_error')
  expect(text).not.toContain('sk-own')
})

test('without the secret of this start, at another path or for another API there is nothing', async () => {
  await using own = await open(() => chatText('x'))
  const { origin } = new URL(own.gateway.urlOf('own'))
  const post = { method: 'POST', headers: { 'x-api-key': 'k' }, body: JSON.stringify(request) }
  const statuses = await Promise.all([
    own.ask(request, '/v1/models'),
    own.ask(request, '/v1/messages', 'other'),
    fetch(`${origin}/wrong/own/v1/messages`, post),
    fetch(`${own.gateway.urlOf('own')}/v1/messages`, { ...post, headers: {} }),
  ])
  expect(statuses.map(({ status }) => status)).toEqual([404, 404, 404, 401])
  expect(own.service.seen).toEqual([])
})

test('who leaves ends the call at the service', async () => {
  let over = () => {}
  const ended = new Promise<void>((done) => {
    over = done
  })
  await using own = await open((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify(delta({ content: 'Hal' }))}\n\n`)
    response.on('close', over)
    return undefined
  })
  const response = await own.ask({ ...request, stream: true })
  const reader = response.body?.getReader()
  await reader?.read()
  await reader?.cancel()
  await ended
})
