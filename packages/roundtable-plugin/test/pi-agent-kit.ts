import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { canary } from '@sandbox/testing'
import { PiSandboxRuntime } from '../src/pi-defaults.ts'
import type { PiSandboxRuntimeOptions } from '../src/pi-options.ts'
import type { PiTurnRequest } from '../src/runtime/pi-turn-input.ts'
import type { TurnEvent } from '../src/runtime/turn-state.ts'
import { ownDir, userOptions } from './account.ts'
import { recordingLogger } from './messages.ts'
import { type MessagesService, type ModelCall, messagesService } from './messages-service.ts'

export const CHANNEL = 'fake:team'
export const PEOPLE = { ann: { id: 'u-ann', name: 'Ann' }, bob: { id: 'u-bob', name: 'Bob' } } as const

/** A Pi runtime with the real agent, and a Messages service that answers as a test says. */
export interface AgentKit extends AsyncDisposable {
  readonly service: MessagesService
  readonly partyDir: string
  readonly free: string
  readonly options: PiSandboxRuntimeOptions
  readonly runtime: PiSandboxRuntime
  /** Tokens by speaker: what the host answers from now on. */
  readonly tokens: Map<string, string>
  readonly turns: TurnEvent[]
  readonly lines: ReturnType<typeof recordingLogger>['lines']
  /** Every token that there ever was. */
  readonly everyToken: string[]
  renew(speaker: string): string
  say(text: string, more?: Partial<PiTurnRequest>): ReturnType<PiSandboxRuntime['runTurn']>
}

/** Asks the tool who speaks, then answers with what it said. */
export function withTool({
  asked,
  toolResult,
}: ModelCall): { tool: string; input: object } | { text: string } {
  if (toolResult === undefined) return { tool: 'whoami', input: { question: asked } }
  return { text: `answer to ${asked}: ${toolResult}` }
}

export async function agentKit(
  driver: NonNullable<PiSandboxRuntimeOptions['driver']>,
  more: Partial<PiSandboxRuntimeOptions> = {},
): Promise<AgentKit> {
  const service = await messagesService(withTool)
  const dir = ownDir()
  const tokens = new Map<string, string>()
  const everyToken: string[] = []
  const renew = (speaker: string) => {
    const token = canary('sk-ant-oat01')
    tokens.set(speaker, token)
    everyToken.push(token)
    return token
  }
  const turns: TurnEvent[] = []
  const { logger, lines } = recordingLogger()
  const options: PiSandboxRuntimeOptions = {
    partyDir: join(dir.path, 'p'),
    profiles: { default: {} },
    model: 'claude-sonnet-4-5',
    upstream: service.url,
    allowHttp: true,
    oauthToken: ({ speaker }) => tokens.get(speaker.id),
    tools: [
      {
        name: 'whoami',
        description: 'Says who speaks.',
        parameters: { type: 'object', properties: { question: { type: 'string' } }, required: ['question'] },
        execute: (input, { speaker, channel }) => ({
          ok: true,
          text: `${speaker.id} in ${channel} asks ${JSON.stringify(input.question).length > 0}`,
        }),
      },
    ],
    driver,
    onTurn: (event) => turns.push(event),
    logger,
    ...userOptions,
    ...more,
  }
  const runtime = new PiSandboxRuntime(options)
  return {
    service,
    partyDir: options.partyDir,
    free: dir.path,
    options,
    runtime,
    tokens,
    everyToken,
    turns,
    lines,
    renew,
    say: (text, request) =>
      runtime.runTurn({ channel: CHANNEL, profile: 'default', speaker: PEOPLE.ann, text, ...request }),
    async [Symbol.asyncDispose]() {
      await runtime.dispose()
      await service[Symbol.asyncDispose]()
      dir[Symbol.dispose]()
    },
  }
}

/** Every entry of a channel's conversation, of all files; throws when a line is not whole. */
export function conversation(partyDir: string): Record<string, unknown>[] {
  const folder = join(partyDir, CHANNEL.replace(':', '_'), 'workspace', 'sessions')
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** Names of the files of a channel's conversation. */
export function sessionFiles(partyDir: string): string[] {
  return readdirSync(join(partyDir, CHANNEL.replace(':', '_'), 'workspace', 'sessions')).filter((name) =>
    name.endsWith('.jsonl'),
  )
}
