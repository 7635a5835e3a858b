import { useComputed, useSignal } from '@preact/signals'
import { type Grouping, usageBy, usageOfAll, usageSeries } from '../model/usage.ts'
import { duration, money, short } from '../model/words.ts'
import { currency, over } from '../state.ts'
import { Chart } from './chart.tsx'

/** Tokens, cost and latency by channel or by speaker: tiles, charts, and the same as a table. */
export function UsagePanel() {
  const by = useSignal<Grouping>('channel')
  const series = useComputed(() => usageSeries(over.value, by.value))
  const { groups, turns, tokens, cost, durationMs } = series.value
  return (
    <section class="card" aria-labelledby="usage-title">
      <header class="card-head">
        <h3 id="usage-title">Usage</h3>
        <GroupingChoice by={by.value} onChoose={(chosen) => (by.value = chosen)} />
      </header>
      <Tiles />
      {turns.length === 1 ? (
        <p class="hint">Tokens, estimated cost and latency are drawn here from the first turn on.</p>
      ) : (
        <>
          <ul class="chart-legend">
            {groups.map((group, index) => (
              <li key={group} class={`tone-${index % 6}`}>
                <bdi>{group}</bdi>
              </li>
            ))}
          </ul>
          <Chart title="Tokens, running total" turns={turns} lines={tokens} format={short} kind="totals" />
          <Chart
            title="Cost estimate, running total"
            turns={turns}
            lines={cost}
            format={(value) => money(value, currency.value)}
            kind="totals"
            missing="A model has no price in prices.json, so no cost is known."
          />
          <Chart
            title="Latency of each turn"
            turns={turns}
            lines={durationMs}
            format={duration}
            kind="points"
          />
          <UsageTable by={by.value} />
        </>
      )}
    </section>
  )
}

function Tiles() {
  const all = usageOfAll(over.value)
  const facts = [
    ['Turns', short(all.turns)],
    ['Tokens', short(all.input + all.output)],
    ['Cost (est.)', all.turns === 0 ? '–' : money(all.cost, currency.value)],
    ['Median', all.turns === 0 ? '–' : duration(all.medianMs)],
  ]
  return (
    <dl class="tiles">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function GroupingChoice({ by, onChoose }: { by: Grouping; onChoose: (by: Grouping) => void }) {
  return (
    <fieldset class="grouping">
      <legend class="unseen">Add up by</legend>
      {(['channel', 'speaker'] as const).map((one) => (
        <label key={one}>
          <input type="radio" name="grouping" checked={by === one} onChange={() => onChoose(one)} />
          {`By ${one}`}
        </label>
      ))}
    </fieldset>
  )
}

function UsageTable({ by }: { by: Grouping }) {
  return (
    <details class="usage-table">
      <summary>As a table</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls must be reachable by keyboard */}
      <section class="scroll-x" tabIndex={0} aria-label={`Usage by ${by}, table`}>
        <table>
          <thead>
            <tr>
              <th scope="col">{by === 'channel' ? 'Channel' : 'Speaker'}</th>
              <th scope="col">Turns</th>
              <th scope="col">Refused</th>
              <th scope="col">In</th>
              <th scope="col">Out</th>
              <th scope="col">Cost (est.)</th>
              <th scope="col">Median</th>
              <th scope="col">Slowest</th>
            </tr>
          </thead>
          <tbody>
            {usageBy(over.value, by).map((one) => (
              <tr key={one.group}>
                <th scope="row">
                  <bdi>{one.group}</bdi>
                </th>
                <td>{one.turns}</td>
                <td>{one.refused}</td>
                <td>{short(one.input)}</td>
                <td>{short(one.output)}</td>
                <td>{money(one.cost, currency.value)}</td>
                <td>{duration(one.medianMs)}</td>
                <td>{duration(one.slowestMs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  )
}
