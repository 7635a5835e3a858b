import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey } from '../host-contract.ts'
import type { PiChannel } from './pi-channel.ts'
import { cleanupFailed } from './pi-failure.ts'
import type { ForgetMemory, PiRuntimePorts } from './pi-ports.ts'
import { checkChannel, checkSpeakerId } from './turn-snapshot.ts'

type Ports = Pick<PiRuntimePorts, 'layout' | 'memory' | 'forgetMemory' | 'logger'>

/**
 * Ends a channel's turn, removes its worker and everything that is kept of it.
 * @throws SandboxPluginError `channel_alias`, `cleanup_failed`, `hook_failed`
 */
export async function eraseChannel(ports: Ports, channel: ChannelKey, held: PiChannel): Promise<void> {
  const release = await held.halt().take
  try {
    const problems = await held.clear()
    if (problems.length > 0) throw cleanupFailed(problems)
    await ports.layout.erase(channel)
    if (ports.forgetMemory !== undefined || ports.memory === undefined) await forget(ports, { channel })
    else
      ports.logger?.warn({ channel }, 'a conversation was erased; what the option memory knows of it was not')
  } finally {
    release()
  }
}

/**
 * Takes away what the host remembers of a speaker.
 * @throws SandboxPluginError `input_invalid`, `hook_failed`
 */
export async function forgetSpeaker(ports: Ports, speakerId: string, channel?: ChannelKey): Promise<void> {
  checkSpeakerId(speakerId)
  if (channel !== undefined) checkChannel(channel)
  if (ports.forgetMemory === undefined && ports.memory !== undefined) {
    throw new SandboxPluginError(
      'hook_failed',
      'What is remembered comes from the option memory. Give forgetMemory too, so that it can be taken away there.',
    )
  }
  await forget(ports, { ...(channel !== undefined && { channel }), speaker: { id: speakerId } })
}

async function forget({ forgetMemory }: Ports, whom: Parameters<ForgetMemory>[0]): Promise<void> {
  try {
    await forgetMemory?.(whom)
  } catch (cause) {
    throw new SandboxPluginError('hook_failed', 'forgetMemory failed. What is on disk is gone; try again.', {
      cause,
    })
  }
}
