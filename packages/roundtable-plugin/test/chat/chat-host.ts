import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Driver } from '@sandbox/docker-worker'
import { createHost, type Host } from '../../src/host/index.ts'
import type { ChannelKey, ChatSurface } from '../../src/host-contract.ts'
import { PI_SANDBOX, piSandbox } from '../../src/pi-plugin.ts'
import { SANDBOX, type SandboxService, sandbox } from '../../src/plugin.ts'
import { ownDir, ownRoots, userOptions } from '../account.ts'
import { recordingLogger } from '../messages.ts'
import { wireDriver } from '../pi-guest.ts'
import { keyOf } from './ledger.ts'
import type { Mode } from './script.ts'

/** What the workers of a chat run on. */
export interface ChatDrivers {
  /** Default: processes. */
  readonly sealed?: (install: { installId: string; user: { uid: number; gid: number } }) => Driver
  /** `agent`: the real one, in processes. Default: guests of this process that speak the real wire. */
  readonly pi?: 'wire' | 'agent'
}

/** The place of a chat: what outlives the starts of its host. */
export interface ChatPlace extends Disposable {
  start(): Promise<ChatHost>
  /** What is left although no host runs; each names one thing. */
  left(): readonly string[]
}

/** A running host with both plugins. */
export interface ChatHost {
  readonly host: Host
  readonly lines: ReturnType<typeof recordingLogger>['lines']
  /** Who owns a channel now. */
  modeOf(channel: ChannelKey): Mode
  /** What both runtimes share. */
  readonly runtimes: readonly Pick<SandboxService['runtime'], 'revoke' | 'restore'>[]
  /** An owner command; what the owner is told. */
  command(group: 'sandbox' | 'pi', name: string, channel: ChannelKey): Promise<string>
}

/** Makes the place; `posts` hears of each reply. */
export function chatPlace(
  url: string,
  channels: readonly ChannelKey[],
  { posts, drivers = {} }: { posts(channel: ChannelKey, text: string): void; drivers?: ChatDrivers },
): ChatPlace {
  const roots = ownRoots()
  const party = ownDir()
  const partyDir = join(party.path, 'p')
  const surface: ChatSurface = {
    surface: 'discord',
    start: async () => {},
    sendReply: async (channel, { chunks }) => posts(channel, chunks.join('\n')),
  }
  const half = Math.ceil(channels.length / 2)
  const sealed = () =>
    sandbox({
      runRoot: roots.runRoot,
      workspaceRoot: roots.workspaceRoot,
      stateFile: roots.stateFile,
      initialChannels: channels.slice(0, half),
      model: 'm',
      modelUrl: `${url}/v1/chat/completions`,
      allowHttp: true,
      apiKey: ({ channel, speaker }) => keyOf('sealed', channel, speaker.id),
      tools: [
        {
          name: 'whoami',
          description: 'Says who speaks.',
          parameters: { type: 'object', properties: {} },
          execute: (_input, { speaker, channel }) => `as ${speaker.id} in ${channel}`,
        },
      ],
      driver: drivers.sealed ?? 'process',
      warm: { workers: 4 },
      admission: false,
      ...userOptions,
    })
  const pi = () =>
    piSandbox({
      partyDir,
      stateFile: `${roots.stateFile}.pi`,
      initialChannels: channels.slice(half),
      model: 'claude-sonnet-4-5',
      profiles: { default: {} },
      upstream: url,
      allowHttp: true,
      oauthToken: ({ channel, speaker }) => keyOf('pi', channel, speaker.id),
      driver: drivers.pi === 'agent' ? 'process' : () => wireDriver(spending),
      admission: false,
      ...userOptions,
    })
  return {
    async start() {
      const { logger, lines } = recordingLogger()
      const host = await createHost({
        plugins: [sealed(), pi()],
        surfaces: [surface],
        discord: {},
        ownerId: 'olga',
        logger,
      })
      await host.start()
      return chatHost(host, lines)
    },
    left: () => [...leftIn(roots.runRoot), ...leftIn(roots.workspaceRoot), ...leftIn(partyDir)],
    [Symbol.dispose]() {
      roots[Symbol.dispose]()
      party[Symbol.dispose]()
    },
  }
}

/** Makes one model call in the turn's name and answers with what came back. */
const spending: Parameters<typeof wireDriver>[0] = async ({ nonce, text, model }, guest) => {
  const { status, json } = await guest.spend(nonce, '/v1/messages', {
    model,
    max_tokens: 2_000,
    messages: [{ role: 'user', content: text }],
  })
  if (status !== 200) return { ok: false, code: 'model_failed', error: `${status}` }
  const [part] = (json as { content: { text: string }[] }).content
  return { ok: true, text: part?.text ?? '', files: [] }
}

function chatHost(host: Host, lines: ChatHost['lines']): ChatHost {
  const sealed = host.services.get(SANDBOX)
  const pi = host.services.get(PI_SANDBOX)
  return {
    host,
    lines,
    modeOf: (channel) => (sealed.channels.has(channel) ? 'sealed' : pi.channels.has(channel) ? 'pi' : 'off'),
    runtimes: [sealed.runtime, pi.runtime],
    async command(group, name, channel) {
      const said: string[] = []
      const interaction = {
        user: { id: 'olga' },
        isChatInputCommand: () => true,
        commandName: 'roundtable',
        channelId: channel.slice(channel.indexOf(':') + 1),
        inGuild: () => true,
        options: { getSubcommandGroup: () => group, getSubcommand: () => name },
        deferReply: async () => {},
        editReply: async (content: string) => void said.push(content),
      }
      await host.commands.handle(interaction)
      return said.join()
    },
  }
}

/** Run directories, sockets, and what an erasure did not finish. */
function leftIn(root: string): string[] {
  if (!existsSync(root)) return []
  return readdirSync(root, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    const path = join(entry.parentPath, entry.name)
    const isRun = /\/run\/[0-9a-f]{8}$|\/[0-9a-f]{8}-[0-9a-f]{8}$/.test(path)
    const known = isRun || entry.name.startsWith('.gone-') || lstatSync(path, { bigint: true }).isSocket()
    return known ? [path] : []
  })
}

/** Processes that this one started, and descriptors that it holds. */
export function holdings(): { readonly children: readonly string[]; readonly descriptors: number } {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const children = pids.flatMap((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return Number(parent) === process.pid && state !== 'Z'
        ? [`process ${stat.slice(0, stat.indexOf(')') + 1)}`]
        : []
    } catch {
      return []
    }
  })
  return { children, descriptors: readdirSync('/proc/self/fd').length }
}
