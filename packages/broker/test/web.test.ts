import { join } from 'node:path'
import { chatText, scriptedUpstream, tempDir } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { type CallEvent, openSealedBroker, SandboxBroker } from '../src/index.ts'
import { gate } from './support/gate.ts'
import { Guest } from './support/guest.ts'
import { MODEL_BODY, turnInput } from './support/rig.ts'
import { chatDelta, event, startStream } from './support/sse.ts'

const context = () => ({
  channel: 'web:room',
  speaker: { id: 'u-ann', name: 'Ann' },
  signal: new AbortController().signal,
})
const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  new Request(`http://broker${path}`, { method: 'POST', body: JSON.stringify(body), headers })

describe('SB-04 without a socket', () => {
  test('a sealed broker answers requests, its turn’s nonce needed', async () => {
    await using upstream = await scriptedUpstream(() => chatText('hello'))
    await using broker = openSealedBroker({
      modelUrl: upstream.url,
      allowHttp: true,
      model: 'm',
      apiKey: () => 'k'.repeat(20),
    })
    const { nonce } = broker.bind(turnInput())
    expect((await broker.handle(post('/model', MODEL_BODY))).status).toBe(410)
    const answer = await broker.handle(post('/model', MODEL_BODY, { 'x-sandbox-turn': nonce }))
    expect(answer.status).toBe(200)
    expect(await answer.json()).toEqual(chatText('hello'))
    expect([...answer.headers.keys()]).toEqual(['content-type'])
  })
  test('a body that never ends stops with the request’s signal, and one over the limit is 413', async () => {
    await using broker = openSealedBroker({
      modelUrl: 'https://api.example/v1',
      model: 'm',
      apiKey: () => 'k'.repeat(20),
    })
    const { nonce } = broker.bind(turnInput())
    const control = new AbortController()
    const request = (body: ReadableStream) =>
      new Request('http://broker/model', {
        method: 'POST',
        body,
        headers: { 'x-sandbox-turn': nonce },
        signal: control.signal,
        duplex: 'half',
      } as RequestInit)
    const endless = broker.handle(
      request(new ReadableStream({ pull: (sink) => sink.enqueue(new Uint8Array(65_536)) })),
    )
    expect((await endless).status).toBe(413)
    const silent = broker.handle(request(new ReadableStream({})))
    control.abort()
    expect((await silent).status).toBe(410)
  })
})

describe('SB-04 streams without a socket', () => {
  const ask = (broker: SandboxBroker) =>
    broker.handle(post('/v1/chat/completions', { ...MODEL_BODY, stream: true }))
  const open = (modelUrl: string, events: CallEvent[]) =>
    new SandboxBroker({
      context: context(),
      modelUrl,
      allowHttp: true,
      model: 'm',
      apiKey: () => 'k'.repeat(20),
      onCall: (one) => events.push(one),
    })
  test('are read as they come, and reported at their end', async () => {
    const events: CallEvent[] = []
    const go = gate()
    await using upstream = await scriptedUpstream(async (_, response) => {
      startStream(response)
      response.write(chatDelta({ content: 'a' }))
      await go.promise
      response.end(chatDelta({}, 'stop') + event('[DONE]'))
    })
    await using broker = open(upstream.url, events)
    const answer = await ask(broker)
    const reader = answer.body?.getReader()
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(chatDelta({ content: 'a' }))
    expect(events).toEqual([])
    go.resolve()
    while ((await reader?.read())?.done === false);
    expect(events[0]).toMatchObject({ reason: 'ok', status: 200 })
  })
  test('T17 end at the provider when their reader leaves', async () => {
    const events: CallEvent[] = []
    const closed = gate()
    await using upstream = await scriptedUpstream((_, response) => {
      response.on('close', () => closed.resolve())
      startStream(response)
      response.write(chatDelta({ content: 'a' }))
    })
    await using broker = open(upstream.url, events)
    await (await ask(broker)).body?.cancel()
    await closed.promise
    expect(events[0]).toMatchObject({ reason: 'aborted' })
  })
})

describe('SandboxBroker, the constructor that existing users have', () => {
  test('is bound from the start, needs no nonce, and has no worker routes', async () => {
    await using upstream = await scriptedUpstream(() => chatText('hello'))
    const scopes: unknown[] = []
    await using broker = new SandboxBroker({
      context: context(),
      modelUrl: upstream.url,
      allowHttp: true,
      model: 'm',
      apiKey: (scope) => {
        scopes.push(scope)
        return 'k'.repeat(20)
      },
    })
    expect((await broker.handle(post('/model', MODEL_BODY))).status).toBe(200)
    expect(scopes).toEqual([{ channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } }])
    expect((await broker.handle(post('/model', MODEL_BODY, { 'x-sandbox-turn': 'x' }))).status).toBe(410)
    for (const path of ['/worker/hello', '/worker/ack', '/worker/result']) {
      expect((await broker.handle(post(path, {}))).status).toBe(404)
    }
  })
  test('CS-13 copies its context, listens, and ends with the signal', async () => {
    await using upstream = await scriptedUpstream(() => chatText('hello'))
    using dir = tempDir()
    const control = new AbortController()
    const given = { ...context(), signal: control.signal }
    const ids: string[] = []
    await using broker = new SandboxBroker({
      context: given,
      modelUrl: upstream.url,
      allowHttp: true,
      model: 'm',
      apiKey: ({ speaker }) => {
        ids.push(speaker.id)
        return 'k'.repeat(20)
      },
    })
    given.speaker.id = 'u-eve'
    await broker.listen(join(dir.path, 's'))
    using guest = new Guest(join(dir.path, 's'))
    expect((await guest.call({ path: '/model', body: MODEL_BODY })).status).toBe(200)
    control.abort()
    expect((await guest.call({ path: '/model', body: MODEL_BODY })).status).toBe(410)
    expect(ids).toEqual(['u-ann'])
    await broker.stop()
  })
  test('a wrong context throws', () => {
    const rest = { modelUrl: 'https://api.example', model: 'm', apiKey: () => 'k' }
    expect(() => new SandboxBroker({ ...rest, context: { ...context(), channel: '' } })).toThrow(
      expect.objectContaining({ code: 'scope_invalid' }),
    )
    expect(() => new SandboxBroker({ ...rest, context: { ...context(), signal: 1 as never } })).toThrow(
      expect.objectContaining({ code: 'turn_invalid' }),
    )
  })
})
