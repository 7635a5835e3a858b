import { useSignal } from '@preact/signals'
import { ask } from '../ask.ts'
import { attempt, channel, enabled } from '../state.ts'
import { Composer } from './composer.tsx'
import { Log } from './log.tsx'
import { TurnBar } from './turn-bar.tsx'

/** One channel: what was said, what runs, and the field to say something. */
export function Chat() {
  const { key = '', title = 'Channel', about = '' } = channel.value ?? {}
  return (
    <section class="chat" aria-labelledby="channel-title">
      <header class="chat-head">
        <div>
          <h2 id="channel-title">
            <span aria-hidden="true"># </span>
            <bdi>{title}</bdi>
          </h2>
          <p>{about}</p>
        </div>
        <SandboxSwitch key={key} channelKey={key} />
      </header>
      <Log key={key} />
      <TurnBar />
      <Composer />
    </section>
  )
}

function SandboxSwitch({ channelKey }: { channelKey: string }) {
  const busy = useSignal(false)
  if (enabled.value === undefined) return null
  const on = enabled.value.includes(channelKey)
  const turn = async () => {
    if (busy.value) return
    busy.value = true
    await attempt(async () => {
      const answer = await ask<{ on: string[] }>('/api/sandbox', { channel: channelKey, on: !on })
      enabled.value = answer.on
    })
    busy.value = false
  }
  return (
    <button
      type="button"
      class="switch"
      role="switch"
      aria-checked={on}
      aria-busy={busy}
      onClick={() => void turn()}
    >
      <span class="track" aria-hidden="true" />
      Sandbox
      <span class="switch-state" aria-hidden="true">
        {busy.value ? 'wait' : on ? 'on' : 'off'}
      </span>
    </button>
  )
}
