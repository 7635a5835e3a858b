import { ask } from '../ask.ts'
import { roadOf, running } from '../model/road.ts'
import { attempt, current, latest } from '../state.ts'

/** The turn that runs in this channel: where it is, and the button that ends it. */
export function TurnBar() {
  const receipt = latest.value
  if (receipt === undefined || !running(receipt)) return null
  const stop = async () => {
    await attempt(() => ask('/api/stop', { channel: current.value }))
    // The button goes with the turn: somebody on a keyboard is not left nowhere.
    document.getElementById('message')?.focus()
  }
  const now = roadOf(receipt).find(({ state }) => state === 'now')
  return (
    <div class="turn-bar">
      <span class="spinner" aria-hidden="true" />
      <p>
        <bdi>{receipt.speaker.name}</bdi>’s turn
        {now === undefined ? '' : ` · ${now.title.toLowerCase()}: ${now.detail}`}
      </p>
      <button type="button" class="stop" onClick={() => void stop()}>
        Stop
      </button>
    </div>
  )
}
