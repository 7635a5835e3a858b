import { KeyChip } from '../key-chip.tsx'
import { roadOf, running, type Stage } from '../model/road.ts'
import { duration, reasonWords } from '../model/words.ts'
import { picked, shown } from '../state.ts'
import type { CallLine, Receipt } from '../wire.ts'

/** The road of one turn, as it happens. */
export function Road() {
  const receipt = shown.value
  return (
    <section class="card" aria-labelledby="road-title">
      <header class="card-head">
        <h3 id="road-title" tabIndex={-1}>
          {picked.value === undefined ? 'Latest turn' : 'Picked turn'}
        </h3>
        {receipt === undefined ? null : <RoadFacts receipt={receipt} />}
      </header>
      {receipt === undefined ? (
        <p class="hint">A turn’s road shows here: claim, worker, broker, key, provider, answer.</p>
      ) : (
        <>
          <ol class="road" aria-label="The road of this turn">
            {roadOf(receipt).map((stage) => (
              <StageItem key={stage.id} stage={stage} />
            ))}
          </ol>
          {receipt.ok === false && receipt.cause !== undefined ? <p class="cause">{receipt.cause}</p> : null}
          <Walls receipt={receipt} />
          <Calls receipt={receipt} />
        </>
      )}
    </section>
  )
}

function RoadFacts({ receipt }: { receipt: Receipt }) {
  return (
    <p class="card-facts">
      {picked.value === undefined ? null : (
        <button
          type="button"
          class="quiet"
          onClick={() => {
            picked.value = undefined
            document.getElementById('road-title')?.focus()
          }}
        >
          Back to the latest
        </button>
      )}
      <bdi>{receipt.speaker.name}</bdi>
      <span>{running(receipt) ? 'running' : duration(receipt.durationMs)}</span>
    </p>
  )
}

const STATES = { todo: 'not reached', now: 'at work', done: 'passed', refused: 'refused' }

function StageItem({ stage }: { stage: Stage }) {
  const { state, title, detail, fingerprint, afterMs } = stage
  return (
    <li class={`stage ${state}`} aria-current={state === 'now' ? 'step' : undefined}>
      <span class="mark" aria-hidden="true" />
      <span class="stage-title">{title}</span>
      <span class="unseen"> {STATES[state]}: </span>
      <span class="stage-detail">
        <bdi>{detail}</bdi>
        {fingerprint === undefined ? null : <KeyChip fingerprint={fingerprint} />}
      </span>
      {afterMs === undefined ? null : <span class="stage-time">{duration(afterMs)}</span>}
    </li>
  )
}

function Walls({ receipt: { posture } }: { receipt: Receipt }) {
  if (posture === undefined) return null
  const standing = posture.filter(({ holds }) => holds).length
  return (
    <details class={`walls ${standing === posture.length ? 'all' : 'some'}`}>
      <summary>
        Worker’s walls <span class="badge">{`${standing} of ${posture.length}`}</span>
      </summary>
      <ul>
        {posture.map(({ label, holds, detail }) => (
          <li key={label} class={holds ? 'holds' : 'open'}>
            <span class="mark" aria-hidden="true" />
            <span>
              {label}
              <span class="unseen">{holds ? ' holds: ' : ' is missing: '}</span>
            </span>
            <span class="wall-detail">{detail}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}

function Calls({ receipt: { calls } }: { receipt: Receipt }) {
  if (calls.length === 0) return null
  return (
    <details class="calls">
      <summary>
        Calls of the worker <span class="badge">{calls.length}</span>
      </summary>
      <ul>
        {calls.map((call) => (
          <CallItem key={call.callId} call={call} />
        ))}
      </ul>
    </details>
  )
}

function CallItem({ call }: { call: CallLine }) {
  const { route, name, reason, status, durationMs, fingerprint } = call
  return (
    <li class={reason === 'ok' ? 'let-through' : 'turned-down'}>
      <span class="call-name">
        <bdi>{name === undefined ? route : `${route} ${name}`}</bdi>
      </span>
      {fingerprint === undefined ? null : <KeyChip fingerprint={fingerprint} />}
      <span class="call-outcome">{reason === 'ok' ? status : `${status} ${reasonWords(reason)}`}</span>
      <span class="stage-time">{duration(durationMs)}</span>
    </li>
  )
}
