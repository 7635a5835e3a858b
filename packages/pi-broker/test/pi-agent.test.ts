import {
  createAgentSession,
  DefaultResourceLoader,
  ModelRuntime,
  SessionManager,
  SettingsManager,
  type ToolDefinition,
} from '@earendil-works/pi-coding-agent'
import { PI_PLACEHOLDER } from '@sandbox/protocol'
import { canary, findSecret, openForwarder, type SeenRequest } from '@sandbox/testing'
import { expect, test } from 'vitest'
import { answers, type Block, fails, messageStream, streams } from './support/messages-service.ts'
import { context, openRig } from './support/rig.ts'

type Runtime = NonNullable<Parameters<typeof ModelRuntime.create>[0]>
const NO_CREDENTIALS: NonNullable<Runtime['credentials']> = {
  read: async () => undefined,
  list: async () => [],
  modify: async (_provider, change) => change(undefined),
  delete: async () => {},
}
const NO_HOME = '/dev/null/pi'
const CLOCK = {
  name: 'clock',
  label: 'clock',
  description: 'Current time',
  parameters: { type: 'object', properties: { zone: { type: 'string' } }, required: ['zone'] },
  execute: async () => ({ content: [{ type: 'text', text: '12:00' }], details: {} }),
} as unknown as ToolDefinition
const THOUGHT: Block = { type: 'thinking', thinking: 'Let me look.', signature: 'c2lnbmF0dXJl' }
const CALL: Block = { type: 'tool_use', id: 'toolu_1', name: 'clock', input: { zone: 'UTC' } }

/** The unchanged agent with nothing but a base URL and the placeholder. */
async function openAgent(
  modelId: string,
  retry: { enabled: boolean; baseDelayMs?: number } = { enabled: false },
) {
  Object.assign(process.env, { PI_OFFLINE: '1', PI_TELEMETRY: '0', PI_SKIP_VERSION_CHECK: '1' })
  const modelRuntime = await ModelRuntime.create({
    credentials: NO_CREDENTIALS,
    modelsPath: null,
    refreshOnCreate: false,
  })
  await modelRuntime.setRuntimeApiKey('anthropic', PI_PLACEHOLDER)
  const model = modelRuntime.getModel('anthropic', modelId)
  if (model === undefined) throw new TypeError(`the agent does not know ${modelId}`)
  const settingsManager = SettingsManager.inMemory({ quietStartup: true, retry })
  const resourceLoader = new DefaultResourceLoader({
    cwd: NO_HOME,
    agentDir: NO_HOME,
    settingsManager,
    noExtensions: true,
    noSkills: true,
    noPromptTemplates: true,
    noThemes: true,
    noContextFiles: true,
  })
  await resourceLoader.reload()
  const { session } = await createAgentSession({
    cwd: '/tmp',
    agentDir: NO_HOME,
    model,
    modelRuntime,
    settingsManager,
    resourceLoader,
    sessionManager: SessionManager.inMemory('/tmp'),
    customTools: [CLOCK],
    tools: ['clock'],
  })
  return { session, model }
}

test.each([
  ['claude-sonnet-5-5', ['low', 'medium', 'high']],
  ['claude-sonnet-4-5', ['low', 'medium', 'high']],
] as const)(
  'captures 3: the real Pi agent (%s) talks for two speakers, turn after turn',
  async (modelId, levels) => {
    const keys: Record<string, string> = { 'u-0': canary('sk-ant-oat01-a'), 'u-1': canary('sk-ant-oat01-b') }
    await using rig = await openRig({ model: modelId, oauthToken: ({ speaker }) => keys[speaker.id] })
    rig.upstream.script = answers(({ body }: SeenRequest) => {
      const last = JSON.parse(body).messages.findLast(
        (message: { role: string }) => message.role !== 'system',
      )
      return JSON.stringify(last).includes('tool_result')
        ? [{ type: 'text', text: 'Noon.' }]
        : [THOUGHT, { type: 'redacted_thinking', data: 'b3BhcXVl' }, CALL]
    })
    await using forwarder = await openForwarder(rig.path)
    const { session, model } = await openAgent(modelId)
    for (let turn = 0; turn < 6; turn += 1) {
      const level = levels[turn % levels.length] ?? 'low'
      const speaker = { id: `u-${turn % 2}`, name: `Guest ${turn % 2}` }
      const bound = rig.broker.bind(context({ speaker, thinking: level }))
      await session.setModel({
        ...model,
        baseUrl: `${forwarder.url}/anthropic`,
        headers: { 'x-sandbox-turn': bound.nonce },
      })
      session.setThinkingLevel(level)
      await session.prompt(`[${speaker.name} (${speaker.id})] what time is it? ⏰`)
      expect(session.getLastAssistantText()).toBe('Noon.')
      bound.release()
    }
    session.dispose()
    expect(rig.events.map(({ reason }) => reason)).toEqual(Array(12).fill('ok'))
    // Nothing of what it sends has to be cut or written over.
    expect(rig.events.flatMap(({ droppedFields }) => droppedFields)).toEqual([])
    const paid = rig.upstream.seen.map(({ headers }) => headers.authorization)
    expect(paid).toEqual(
      Array.from({ length: 12 }, (_, call) => `Bearer ${keys[`u-${Math.floor(call / 2) % 2}`]}`),
    )
    for (const { body, headers, url } of rig.upstream.seen) {
      expect(url).toBe('/v1/messages?beta=true')
      expect(headers['user-agent']).toMatch(/^claude-cli\//)
      expect(headers['anthropic-beta']).toContain('oauth-2025-04-20')
      expect(body).not.toContain(PI_PLACEHOLDER)
    }
    // T44: what an answer was made of comes back as it went out, with every later request.
    const last = JSON.parse(String(rig.upstream.seen.at(-1)?.body))
    const thoughts = last.messages.flatMap(({ content }: { content: unknown }) =>
      Array.isArray(content) ? content.filter(({ type }) => type === 'thinking') : [],
    )
    expect(thoughts).toEqual(Array(6).fill(THOUGHT))
    for (const key of Object.values(keys))
      expect(findSecret(JSON.stringify(session.messages), key)).toEqual([])
  },
)

test('PB-22 T24 the real Pi agent reads refusals and errors for what they are, and does not ask again', async () => {
  await using rig = await openRig({ model: 'claude-sonnet-5-5' })
  await using forwarder = await openForwarder(rig.path)
  const { session, model } = await openAgent('claude-sonnet-5-5')
  const bound = rig.broker.bind(context())
  await session.setModel({
    ...model,
    baseUrl: `${forwarder.url}/anthropic`,
    headers: { 'x-sandbox-turn': bound.nonce },
  })
  rig.upstream.script = fails(400, 'invalid_request_error', 'messages.0: no')
  await session.prompt('hi')
  const [failed] = session.messages.slice(-1) as { stopReason?: string; errorMessage?: string }[]
  expect([failed?.stopReason, failed?.errorMessage]).toEqual([
    'error',
    expect.stringContaining('messages.0: no'),
  ])
  bound.release()
  await session.prompt('hi')
  const [over] = session.messages.slice(-1) as { errorMessage?: string }[]
  expect(over?.errorMessage).toContain('There is no such turn')
  expect(rig.upstream.seen).toHaveLength(1)
  expect(rig.events.map(({ reason }) => reason)).toEqual(['upstream_status', 'turn_over'])
  session.dispose()
})

test('T16 the real Pi agent asks again after a stream that broke, and the turn has its answer', async () => {
  await using rig = await openRig({ model: 'claude-sonnet-5-5' })
  await using forwarder = await openForwarder(rig.path)
  const { session, model } = await openAgent('claude-sonnet-5-5', { enabled: true, baseDelayMs: 1 })
  const bound = rig.broker.bind(context())
  await session.setModel({
    ...model,
    baseUrl: `${forwarder.url}/anthropic`,
    headers: { 'x-sandbox-turn': bound.nonce },
  })
  const whole = messageStream([{ type: 'text', text: 'The tide turns at noon.' }])
  rig.upstream.script = (request, response, incoming) =>
    streams(rig.upstream.seen.length === 1 ? whole.slice(0, 4) : whole)(request, response, incoming)
  await session.prompt('hi')
  expect(session.getLastAssistantText()).toBe('The tide turns at noon.')
  expect(rig.events.map(({ reason }) => reason)).toEqual(['upstream_network', 'ok'])
  bound.release()
  session.dispose()
})
