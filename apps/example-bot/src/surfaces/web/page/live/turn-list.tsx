import { useSignal } from '@preact/signals'
import { save } from '../ask.ts'
import { KeyChip } from '../key-chip.tsx'
import { turnsAsCsv, turnsAsJson } from '../model/turn-export.ts'
import { type Outcome, outcomeOf } from '../model/turn-filter.ts'
import { count, duration } from '../model/words.ts'
import { channels, filter, found, picked, receipts, shown } from '../state.ts'
import type { Receipt } from '../wire.ts'

/** How many turns are drawn at first, and more by each press. */
const PAGE = 25

/** The turns of all channels: search, filter, pick, export. */
export function TurnList() {
  const pages = useSignal(1)
  const turns = found.value.slice(0, PAGE * pages.value)
  return (
    <section class="card" aria-labelledby="turns-title">
      <header class="card-head">
        <h3 id="turns-title">Turns</h3>
        <Exports />
      </header>
      <Filters />
      <p class="hint" role="status">
        {found.value.length === receipts.value.size
          ? count(found.value.length, 'turn')
          : `${found.value.length} of ${count(receipts.value.size, 'turn')}`}
      </p>
      <ol class="turns">
        {turns.map((receipt) => (
          <Row key={receipt.turnId} receipt={receipt} />
        ))}
      </ol>
      {turns.length < found.value.length ? (
        <button type="button" class="quiet more" onClick={() => (pages.value += 1)}>
          Show more
        </button>
      ) : null}
    </section>
  )
}

function Row({ receipt }: { receipt: Receipt }) {
  const outcome = outcomeOf(receipt)
  const paid = receipt.payments.at(-1)
  return (
    <li>
      <button
        type="button"
        class="turn"
        aria-pressed={shown.value?.turnId === receipt.turnId}
        onClick={() => {
          picked.value = receipt.turnId
          document.getElementById('road-title')?.focus()
        }}
      >
        <time dateTime={receipt.at}>{new Date(receipt.at).toLocaleTimeString()}</time>
        <span class="turn-who">
          <bdi>{receipt.speaker.name}</bdi> <span class="soft">in {receipt.channel}</span>
        </span>
        <span class={`outcome ${outcome}`}>{outcome}</span>
        {paid === undefined ? <span class="soft">nobody</span> : <KeyChip fingerprint={paid.fingerprint} />}
        <span class="turn-time">{outcome === 'running' ? '…' : duration(receipt.durationMs)}</span>
      </button>
    </li>
  )
}

const OUTCOMES: readonly Outcome[] = ['running', 'answered', 'refused', 'stopped', 'failed']

function Filters() {
  const set = (more: Partial<typeof filter.value>) => {
    filter.value = { ...filter.value, ...more }
  }
  return (
    <search class="filters">
      <input
        type="search"
        aria-label="Search turns"
        placeholder="Search: rule, key, reason, speaker …"
        value={filter.value.words}
        onInput={({ currentTarget }) => set({ words: currentTarget.value })}
      />
      <select
        aria-label="Channel"
        value={filter.value.channel}
        onChange={({ currentTarget }) => set({ channel: currentTarget.value })}
      >
        <option value="">All channels</option>
        {channels.value.map(({ key, title }) => (
          <option key={key} value={key}>
            # {title}
          </option>
        ))}
      </select>
      <select
        aria-label="Outcome"
        value={filter.value.outcome}
        onChange={({ currentTarget }) => set({ outcome: currentTarget.value as Outcome | '' })}
      >
        <option value="">All outcomes</option>
        {OUTCOMES.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </search>
  )
}

function Exports() {
  const name = () => `turns-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}`
  return (
    <p class="card-facts">
      <span id="export-label">Export</span>
      <button
        type="button"
        class="quiet"
        aria-describedby="export-label"
        onClick={() => save(new Blob([turnsAsCsv(found.value)], { type: 'text/csv' }), `${name()}.csv`)}
      >
        CSV
      </button>
      <button
        type="button"
        class="quiet"
        aria-describedby="export-label"
        onClick={() =>
          save(new Blob([turnsAsJson(found.value)], { type: 'application/json' }), `${name()}.json`)
        }
      >
        JSON
      </button>
    </p>
  )
}
