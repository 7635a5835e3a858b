import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HostToolContext } from '@sandbox/broker'
import { canary, findSecret, type ScriptedUpstream, scriptedUpstream, tempDir } from '@sandbox/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  type DelegationOutcome,
  type DelegationScope,
  ResearchError,
  type ResearchOptions,
  type ResearchSdk,
  SandboxResearchWorker,
  ScopedSandboxDelegator,
} from '../src/delegation/index.ts'
import { createSafeFetcher } from '../src/safe-fetch/safe-fetch.ts'
import { type ModelAnswer, type ModelCall, messagesService } from './messages-service.ts'

const sdk = (): Promise<ResearchSdk> => import('@earendil-works/pi-coding-agent')
const ANN = { id: 'u-ann', name: 'Ann' }

/** The real one, for which the servers of the test are public. */
const network = createSafeFetcher({
  resolve: async () => [],
  ownAddresses: () => [],
  isPublic: (address) => address === '127.0.0.1',
})
const fetchHere: typeof network.safeFetch = (url, options) =>
  network.safeFetch(url, { ...options, ports: [Number(new URL(url).port)] })

/** A job of Ann's that nobody calls off. */
function job(changes: Partial<DelegationScope> = {}): DelegationScope {
  return { channel: 'fake:1', author: ANN, signal: new AbortController().signal, ...changes }
}

/** Uses each of these tools once, then reports what they said. */
function uses(...tools: readonly { readonly tool: string; readonly input: object }[]) {
  let next = 0
  const said: string[] = []
  return ({ toolResult }: ModelCall): ModelAnswer => {
    if (toolResult !== undefined) said.push(toolResult)
    const use = tools[next]
    next += 1
    return use ?? { text: `report: ${said.join(' | ')}` }
  }
}

/** A worker with the real agent, and a Messages service that answers as the test says. */
async function kit(answer: (call: ModelCall) => ModelAnswer, more: Partial<ResearchOptions> = {}) {
  const service = await messagesService(answer)
  onTestFinished(() => service[Symbol.asyncDispose]())
  const token = canary('sk-ant-oat01')
  const scopes: unknown[] = []
  const options: ResearchOptions = {
    sdk,
    model: 'claude-sonnet-4-5',
    modelUrl: service.url,
    allowHttp: true,
    apiKey: (scope) => {
      scopes.push(scope)
      return token
    },
    search: async (query, { speaker }) => `found ${query} for ${speaker.id}`,
    extractFetched: ({ status, contentType, bytes }) => `${status} ${contentType} ${Buffer.from(bytes)}`,
    ...more,
  }
  return { service, token, scopes, options, worker: new SandboxResearchWorker(options, fetchHere) }
}

async function page(): Promise<ScriptedUpstream> {
  const server = await scriptedUpstream((_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('tea is a leaf')
    return undefined
  })
  onTestFinished(() => server[Symbol.asyncDispose]())
  return server
}

const toolNames = ({ body }: ModelCall) =>
  ((body as { tools?: readonly { name: string }[] }).tools ?? []).map(({ name }) => name)

describe('RW-02 RW-03 its own tools', () => {
  test('scope:own-key-only a research searches, fetches once, reports; each call is paid for by who asked', async () => {
    const site = await page()
    const { worker, service, token, scopes } = await kit(
      uses(
        { tool: 'web_search', input: { query: 'tea' } },
        { tool: 'fetch_content', input: { url: `${site.url}/tea` } },
      ),
    )
    const report = await worker.run('What is tea?', job())
    expect(report).toMatch(/^report: .*found tea for u-ann.* \| .*200 text\/plain tea is a leaf/)
    expect(site.seen.map(({ url }) => url)).toEqual(['/tea'])
    expect(service.calls.map(({ authorization }) => authorization)).toEqual(Array(3).fill(`Bearer ${token}`))
    expect(scopes).toEqual(Array(3).fill({ channel: 'fake:1', speaker: ANN }))
    const [first] = service.calls
    expect(first?.asked).toBe('What is tea?')
    expect(service.calls.map(toolNames)).toEqual(Array(3).fill(['web_search', 'fetch_content']))
    expect(JSON.stringify(first?.body.system)).toContain('You research one task')
    for (const { body } of service.calls) expect(findSecret(JSON.stringify(body), token)).toEqual([])
  })

  test('RW-03 fetchContent stands in for the fetch and what reads it', async () => {
    const site = await page()
    const asked: string[] = []
    const { worker } = await kit(uses({ tool: 'fetch_content', input: { url: site.url } }), {
      fetchContent: async (url) => {
        asked.push(url)
        return 'read elsewhere'
      },
    })
    expect(await worker.run('x', job())).toContain('read elsewhere')
    expect([asked, site.seen]).toEqual([[site.url], []])
  })

  test.each<[string, string, object, RegExp]>([
    ['a long query', 'web_search', { query: 'x'.repeat(4_001) }, /4000/],
    ['a long address', 'fetch_content', { url: `https://a.example/${'x'.repeat(8_000)}` }, /8000/],
    ['an address of this machine', 'fetch_content', { url: 'http://127.0.0.2:8080/' }, /public/],
    ['a shell', 'bash', { command: 'id' }, /bash/],
    ['a file', 'read', { path: '/etc/passwd' }, /read/],
  ])('%s: the model is told no', async (_, tool, input, words) => {
    const searched: string[] = []
    const { worker } = await kit(uses({ tool, input }), {
      search: async (query) => {
        searched.push(query)
        return 'found'
      },
    })
    const report = await worker.run('x', job())
    expect(report).toMatch(words)
    expect(report).not.toMatch(/root:|uid=/)
    expect(searched).toEqual([])
  })

  test('a long answer of a tool is cut', async () => {
    const { worker } = await kit(uses({ tool: 'web_search', input: { query: 'x' } }), {
      search: async () => 'y'.repeat(50_000),
    })
    const report = await worker.run('x', job())
    expect(report.match(/y/g)).toHaveLength(40_000)
    expect(report).toContain('[cut]')
  })

  test('RW-02 nothing of the host is found: no login, context file, extension or setting, and nothing is saved', async () => {
    using home = tempDir()
    const planted = canary()
    const agent = join(home.path, '.pi', 'agent')
    mkdirSync(join(agent, 'extensions'), { recursive: true })
    writeFileSync(join(agent, 'AGENTS.md'), planted)
    writeFileSync(join(agent, 'SYSTEM.md'), planted)
    writeFileSync(join(agent, 'auth.json'), JSON.stringify({ anthropic: { type: 'api_key', key: planted } }))
    const extension = `export default (pi) => pi.on('before_agent_start', () => ({ systemPrompt: '${planted}' }))`
    writeFileSync(join(agent, 'extensions', 'x.js'), extension)
    vi.stubEnv('HOME', home.path)
    vi.stubEnv('PI_CODING_AGENT_DIR', agent)
    vi.stubEnv('ANTHROPIC_API_KEY', planted)
    onTestFinished(() => void vi.unstubAllEnvs())
    const before = readdirSync(home.path, { recursive: true }).sort()
    const { worker, service } = await kit(uses({ tool: 'web_search', input: { query: 'tea' } }))
    await worker.run('x', job())
    expect(findSecret(JSON.stringify(service.seen), planted)).toEqual([])
    expect(readdirSync(home.path, { recursive: true }).sort()).toEqual(before)
  })
})

describe('RW-04 tools, scope and words of the host', () => {
  test('the host’s tools replace both, with who asked', async () => {
    const contexts: Partial<HostToolContext>[] = []
    const { worker, service } = await kit(uses({ tool: 'browse', input: { at: 'x' } }), {
      tools: [
        {
          name: 'browse',
          description: 'Browses.',
          parameters: { type: 'object', properties: { at: { type: 'string' } } },
          execute: (input, { channel, speaker }) => {
            contexts.push({ channel, speaker })
            return `browsed ${JSON.stringify(input)}`
          },
        },
      ],
    })
    expect(await worker.run('x', job())).toContain('browsed')
    expect(service.calls.map(toolNames)).toEqual([['browse'], ['browse']])
    expect(contexts).toEqual([{ channel: 'fake:1', speaker: ANN }])
  })

  test('scope is around the whole research', async () => {
    const steps: string[] = []
    const { worker } = await kit(() => ({ text: 'report' }), {
      scope: async (run, { channel }) => {
        steps.push(`open for ${channel}`)
        try {
          return await run()
        } finally {
          steps.push('closed')
        }
      },
      apiKey: () => {
        steps.push('call')
        return 'sk-ant-oat01-0123456789abcdef'
      },
    })
    expect(await worker.run('x', job())).toBe('report')
    expect(steps).toEqual(['open for fake:1', 'call', 'closed'])
  })

  test('W-90 a signal that fired before, or while the agent was loaded, ends it without a call', async () => {
    const { worker, service } = await kit(() => ({ text: 'report' }))
    await expect(worker.run('x', job({ signal: AbortSignal.abort() }))).rejects.toThrow(
      'The research was stopped before it was done.',
    )
    const stop = new AbortController()
    const { worker: late, service: other } = await kit(() => ({ text: 'report' }), {
      sdk: async () => {
        stop.abort('too late')
        return await sdk()
      },
      aborted: (reason) => `Ended: ${reason}.`,
    })
    await expect(late.run('x', job({ signal: stop.signal }))).rejects.toThrow('Ended: too late.')
    expect([service.calls, other.calls]).toEqual([[], []])
  })

  test('W-90 a signal that fires while the agent never comes ends it; one that comes late is put away', async () => {
    const stop = new AbortController()
    const loaded = Promise.withResolvers<ResearchSdk>()
    const { worker, service } = await kit(() => ({ text: 'report' }), { sdk: () => loaded.promise })
    const running = worker.run('x', job({ signal: stop.signal }))
    stop.abort()
    await expect(running).rejects.toThrow('The research was stopped before it was done.')
    const real = await sdk()
    const disposed = Promise.withResolvers<void>()
    loaded.resolve({
      ...real,
      async createAgentSession(options) {
        const made = await real.createAgentSession(options)
        const dispose = made.session.dispose.bind(made.session)
        made.session.dispose = () => {
          dispose()
          disposed.resolve()
        }
        return made
      },
    })
    await disposed.promise
    expect(service.calls).toEqual([])
  })

  test('W-90 a signal that fires in mid-call ends it, and the call', async () => {
    const stop = new AbortController()
    const { worker, service } = await kit(() => {
      stop.abort()
      return 'hang'
    })
    await expect(worker.run('x', job({ signal: stop.signal }))).rejects.toThrow(ResearchError)
    expect(service.calls).toHaveLength(1)
  })
})

describe('RW-05 the report', () => {
  test.each<[string, ModelAnswer, RegExp]>([
    ['no text', { text: ' ' }, /no report|no answer/i],
    ['a refusal of the service', { status: 401, type: 'authentication_error' }, /401/],
  ])('%s is an error in words', async (_, answer, words) => {
    const { worker } = await kit(() => answer)
    await expect(worker.run('x', job())).rejects.toThrow(words)
  })

  test('scope:no-fallback without a credential nothing is sent', async () => {
    const { worker, service } = await kit(() => ({ text: 'report' }), { apiKey: () => undefined })
    await expect(worker.run('x', job())).rejects.toThrow(/no credential/)
    expect(service.seen).toEqual([])
  })

  test('W-92 it is delivered whole: the delegator has the one limit', async () => {
    const { worker } = await kit(() => ({ text: 'x'.repeat(30_000) }))
    const outcomes: DelegationOutcome[] = []
    const delegator = new ScopedSandboxDelegator({
      target: 'researcher',
      run: worker.run,
      deliver: (_, outcome) => void outcomes.push(outcome),
    })
    delegator.start({ channel: 'fake:1', target: 'researcher', author: ANN, title: 't', task: 'x' })
    await delegator.idle()
    expect(outcomes).toEqual([{ ok: true, report: 'x'.repeat(30_000) }])
  })
})

describe('what is never told', () => {
  // Of no known shape: only the research knows that it is one.
  const key = 'mXq7Zp0Lr93vKd81TtWy'

  test.each<[string, ModelAnswer]>([
    ['a refusal', { status: 401, type: `bad key ${key}` }],
    ['a report', { text: `the key is ${key}` }],
    ['a report in base64', { text: Buffer.from(`key=${key}`).toString('base64') }],
  ])('T30 T35 DG-05 a service that says the credential again in %s', async (_, answer) => {
    const { worker, service } = await kit(() => answer, { apiKey: () => key })
    const outcome = await worker.run('x', job()).catch((error: Error) => error.message)
    expect(service.seen[0]?.headers['x-api-key']).toBe(key)
    expect(outcome).toMatch(/401|held a credential/)
    expect(findSecret(outcome, key)).toEqual([])
  })

  test('T31 RW-04 the words of a hook or a tool of the host that fails', async () => {
    const fails = () => Promise.reject(new TypeError(`401 at /srv/search for ${key}`))
    const use = { tool: 'web_search', input: { query: 'x' } }
    const { worker, service } = await kit(uses(use), { search: fails })
    expect(await worker.run('x', job())).toContain('The tool failed.')
    const { worker: other, service: second } = await kit(uses({ tool: 'browse', input: {} }), {
      tools: [{ name: 'browse', description: 'd', parameters: { type: 'object' }, execute: fails }],
    })
    expect(await other.run('x', job())).toContain('The tool failed.')
    expect(JSON.stringify([service.seen, second.seen])).not.toMatch(/srv|mXq7/)
  })

  test('SB-25 a redirect of the service is not followed', async () => {
    const elsewhere = await page()
    const service = await scriptedUpstream((_, response) => {
      response.writeHead(307, { location: `${elsewhere.url}/v1/messages` }).end()
      return undefined
    })
    onTestFinished(() => service[Symbol.asyncDispose]())
    const { worker } = await kit(() => ({ text: '' }), { modelUrl: service.url, apiKey: () => key })
    await expect(worker.run('x', job())).rejects.toThrow(ResearchError)
    expect(elsewhere.seen).toEqual([])
  })
})

describe('RW-01 options', () => {
  const tool = { name: 'browse', description: 'd', parameters: { type: 'object' }, execute: () => '' }
  test.each<[string, object]>([
    ['tools', { extractFetched: undefined }],
    ['tools', { search: undefined }],
    ['tools', { search: undefined, extractFetched: undefined, tools: [] }],
    ['tools', { tools: [{ ...tool, name: 'bash' }] }],
    ['tools', { tools: [tool, tool] }],
    ['search', { search: 'x' }],
    ['sdk', { sdk: undefined }],
    ['apiKey', { apiKey: 'sk-x' }],
    ['modelUrl', { modelUrl: 'http://models.example' }],
  ])('%s: %j is refused at once', async (option, changes) => {
    const { options } = await kit(() => ({ text: '' }))
    expect(() => new SandboxResearchWorker({ ...options, ...changes } as never)).toThrow(new RegExp(option))
  })

  test('a model that the SDK does not know is told, and an SDK that did not load is tried again', async () => {
    const { worker } = await kit(() => ({ text: '' }), { model: 'no-such-model' })
    await expect(worker.run('x', job())).rejects.toMatchObject({
      code: 'options_invalid',
      message: /no-such-model of anthropic/,
    })
    let tries = 0
    const { worker: again } = await kit(() => ({ text: 'report' }), {
      sdk: async () => {
        tries += 1
        if (tries === 1) throw new TypeError('not installed')
        return await sdk()
      },
    })
    await expect(again.run('x', job())).rejects.toThrow('not installed')
    expect(await again.run('x', job())).toBe('report')
  })
})
