import { createHost, type HostOptions } from '../src/host/create-host.ts'
import type { HostPlugin } from '../src/host/link-plugins.ts'
import type {
  ChannelClaim,
  ChannelKey,
  ChatSurface,
  InboundMessage,
  OutboundReply,
  TurnAdmission,
} from '../src/host-contract.ts'
import { recordingLogger } from './messages.ts'

export function claim(name: string, priority: number, parts: Partial<ChannelClaim> = {}): ChannelClaim {
  return { name, priority, owns: () => true, admit: () => undefined, startFresh: async () => name, ...parts }
}

export function admission(run: () => Promise<void>, parts: Partial<TurnAdmission> = {}): TurnAdmission {
  return { kind: 'turn', failure: 'it failed', run, ...parts }
}

export function surface(parts: Partial<ChatSurface> = {}) {
  const sent: [ChannelKey, OutboundReply][] = []
  let deliver: (message: InboundMessage) => Promise<void> = async () => {}
  const made: ChatSurface = {
    surface: 'fake',
    start: async (given) => {
      deliver = given
    },
    sendReply: async (channel, reply) => void sent.push([channel, reply]),
    ...parts,
  }
  return { surface: made, sent, deliver: (each: InboundMessage) => deliver(each) }
}

export async function hostWith(claims: ChannelClaim[], options: Partial<HostOptions> = {}) {
  const { logger, lines } = recordingLogger()
  const plugin: HostPlugin = { name: 'p', setup: () => ({ channels: claims }) }
  const host = await createHost({ plugins: [plugin], logger, ...options })
  return { host, lines }
}

export const tick = () => new Promise<void>((done) => setImmediate(done))
