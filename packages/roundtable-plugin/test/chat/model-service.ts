import {
  chatText,
  chatToolCalls,
  type ScriptedUpstream,
  type SeenRequest,
  scriptedUpstream,
} from '@sandbox/testing'
import { events } from '../messages-service.ts'
import { answerOf, idsIn, keyOf, type Said } from './ledger.ts'
import type { Mode } from './script.ts'

/** Both model services on one port: Chat Completions for sealed turns, Messages for Pi. */
export interface ChatModels extends ScriptedUpstream {
  /** What must never happen, as it happened. */
  readonly breaches: string[]
}

/** Serves a chat; `hangs` is called when somebody waits for an answer that never comes. */
export async function chatModels(said: readonly Said[], hangs: (said: Said) => void): Promise<ChatModels> {
  const breaches: string[] = []
  const upstream = await scriptedUpstream(async (request, response) => {
    const mode: Mode = request.url.includes('/messages') ? 'pi' : 'sealed'
    const message = messageOf(request, mode, said, breaches)
    if (message === undefined) return void response.writeHead(400).end('{}')
    message.calls += 1
    if (message.behaviour === 'hang') {
      hangs(message)
      return new Promise(() => {})
    }
    if (message.behaviour === 'error')
      return void response.writeHead(500).end('{"error":{"message":"sorry"}}')
    if (message.behaviour === 'busy') return void response.writeHead(429, { 'retry-after': '1' }).end('{}')
    if (message.behaviour === 'cut') return void response.socket?.destroy()
    if (message.behaviour === 'nonsense') return void response.writeHead(200).end('<html>')
    if (message.behaviour === 'slow') await new Promise((done) => setTimeout(done, 30))
    return answered(message, mode, request, response)
  })
  return Object.assign(upstream, { breaches })
}

function answered(
  said: Said,
  mode: Mode,
  { body }: SeenRequest,
  response: { write(text: string): unknown } & EndOf,
): unknown {
  if (mode === 'sealed') {
    const first = said.behaviour === 'tool' && said.calls === 1
    return first ? chatToolCalls([{ name: 'host_whoami', input: {} }]) : chatText(answerOf(said))
  }
  if (JSON.parse(body).stream === true) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events({ text: answerOf(said) })) response.write(event)
    return void response.end()
  }
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content: [{ type: 'text', text: answerOf(said) }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 7, output_tokens: 5 },
  }
}

interface EndOf {
  writeHead(status: number, headers?: Record<string, string>): unknown
  end(text?: string): unknown
}

/** The message that a request is about: the newest in it. Notes everything that it must not be or hold. */
function messageOf(
  { body, headers }: SeenRequest,
  mode: Mode,
  said: readonly Said[],
  breaches: string[],
): Said | undefined {
  const ids = idsIn(body)
  const message = said[ids.at(-1) ?? -1]
  if (message === undefined) return void breaches.push('a request about no message')
  const { id, channel, speaker, ownedBy, floor } = message
  const key = keyOf(mode, channel, speaker)
  const where = `the request for message ${id} in ${channel}`
  if (mode !== ownedBy) breaches.push(`${where} came from ${mode} mode, and the channel is ${ownedBy}`)
  if (headers.authorization !== `Bearer ${key}`) {
    breaches.push(`${where} carries ${headers.authorization} instead of the key ${key}`)
  }
  if (message.over) breaches.push(`${where} came after its reply`)
  for (const other of ids) {
    if (said[other]?.channel !== channel)
      breaches.push(`${where} holds message ${other} of ${said[other]?.channel}`)
    else if (mode === 'sealed' && other < floor)
      breaches.push(`${where} holds ${other}, forgotten since ${floor}`)
  }
  return message
}
