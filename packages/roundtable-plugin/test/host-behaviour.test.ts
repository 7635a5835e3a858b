import { join } from 'node:path'
import { chatText, scriptedUpstream } from '@sandbox/testing'
import { describe } from 'vitest'
import { piSandbox } from '../src/pi-plugin.ts'
import { sandbox } from '../src/plugin.ts'
import { ownDir, ownRoots, userOptions } from './account.ts'
import { hostBehaviour } from './host-behaviour.ts'
import { hostCorners } from './host-corners.ts'
import { messagesService } from './messages-service.ts'
import { wireDriver } from './pi-guest.ts'
import { type MadePlugin, pluginBehaviour } from './plugin-behaviour.ts'
import { smallHost } from './small-host.ts'

/** Whoever waits for the model to be asked to `wait`. */
let asked = Promise.withResolvers<void>()
const waits = () => {
  asked = Promise.withResolvers<void>()
  return asked.promise
}

/** The last thing that a person wrote, as it stands in a request. */
const said = (body: string) =>
  /"message\\?":\\?"([^"\\]*)/.exec(body.slice(body.lastIndexOf('message') - 2))?.[1] ?? ''

async function sealed(): Promise<MadePlugin> {
  const upstream = await scriptedUpstream(({ body }) => {
    const text = said(body)
    if (text !== 'wait') return chatText(`you said: ${text}`)
    asked.resolve()
    return new Promise(() => {})
  })
  const roots = ownRoots()
  const scopes: unknown[] = []
  const plugin = sandbox({
    runRoot: roots.runRoot,
    workspaceRoot: roots.workspaceRoot,
    stateFile: roots.stateFile,
    initialChannels: ['fake:1'],
    model: 'm',
    modelUrl: `${upstream.url}/v1/chat/completions`,
    allowHttp: true,
    apiKey: (scope) => {
      scopes.push(scope)
      return 'sk-test-0123456789abcdef'
    },
    driver: 'process',
    warm: false,
    ...userOptions,
  })
  return {
    plugin,
    scopes,
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]()
      roots[Symbol.dispose]()
    },
  }
}

async function pi(): Promise<MadePlugin> {
  const model = await messagesService(({ asked: text }) => ({ text: `you said: ${text}` }))
  const roots = ownRoots()
  const party = ownDir()
  const scopes: unknown[] = []
  const driver = wireDriver(async ({ nonce, text }, guest) => {
    if (text === 'wait') {
      asked.resolve()
      return await new Promise<never>(() => {})
    }
    await guest.spend(nonce, '/v1/messages', {
      model: 'claude-sonnet-4-5',
      max_tokens: 2_000,
      messages: [{ role: 'user', content: text }],
    })
    return { ok: true, text: `you said: ${text}`, files: [] }
  })
  const plugin = piSandbox({
    partyDir: join(party.path, 'p'),
    stateFile: roots.stateFile,
    initialChannels: ['fake:1'],
    model: 'claude-sonnet-4-5',
    profiles: { default: {} },
    upstream: model.url,
    allowHttp: true,
    oauthToken: (scope) => {
      scopes.push(scope)
      return 'sk-ant-oat01-0123456789abcdef'
    },
    driver: () => driver,
    ...userOptions,
  })
  return {
    plugin,
    scopes,
    async [Symbol.asyncDispose]() {
      await model[Symbol.asyncDispose]()
      roots[Symbol.dispose]()
      party[Symbol.dispose]()
    },
  }
}

describe('the small host', () => {
  hostBehaviour(smallHost)
  hostCorners(smallHost)
  const [inSealed, inPi] = [
    { make: sealed, tellsPrincipal: true },
    { make: pi, tellsPrincipal: false },
  ]
  pluginBehaviour(smallHost, { name: 'sandbox', kind: 'sandbox', group: 'sandbox', waits, ...inSealed })
  pluginBehaviour(smallHost, { name: 'piSandbox', kind: 'pi-sandbox', group: 'pi', waits, ...inPi })
})
