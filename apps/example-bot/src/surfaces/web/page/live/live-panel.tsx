import { Road } from './road.tsx'
import { TurnList } from './turn-list.tsx'
import { UsagePanel } from './usage-panel.tsx'

/** Beside the chat: what the host itself tells of every turn. */
export function LivePanel() {
  return (
    <section class="live" aria-labelledby="live-title">
      <h2 id="live-title" class="unseen">
        Live view
      </h2>
      <Road />
      <UsagePanel />
      <TurnList />
    </section>
  )
}
