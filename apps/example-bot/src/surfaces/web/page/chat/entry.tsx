import { saveFile } from '../ask.ts'
import { KeyChip } from '../key-chip.tsx'
import { count, duration, money, reasonWords, size } from '../model/words.ts'
import { attempt, currency, receipts } from '../state.ts'
import type { Receipt, RoomEntry, RoomFile } from '../wire.ts'

/** One line of a channel. All that people and workers chose is text, and nothing else. */
export function Entry({ entry }: { entry: RoomEntry }) {
  const receipt = receipts.value.get(entry.turnId ?? '')
  const failed = receipt?.ok === false
  const time = new Date(entry.at)
  return (
    <li class={`entry ${entry.kind}${failed ? ' failed' : ''}`}>
      <Face entry={entry} />
      <div class="said">
        <p class="head">
          <bdi class="author">{entry.author}</bdi>
          <time dateTime={entry.at} title={time.toLocaleString()}>
            {time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}
          </time>
        </p>
        <p class="text" dir="auto">
          {entry.text}
        </p>
        {entry.files === undefined ? null : <Files files={entry.files} />}
        {receipt === undefined || entry.kind !== 'reply' ? null : <ReceiptLine receipt={receipt} />}
      </div>
    </li>
  )
}

/** An answer that is being written: its words so far, where the runtime tells them. */
export function Draft({ text }: { text: string | undefined }) {
  return (
    <li class="entry reply draft">
      <span class="face bot" aria-hidden="true" />
      <div class="said">
        <p class="head">
          <span class="author">Bot</span>
          <span class="writing">
            is writing
            <span class="dots" aria-hidden="true">
              <i />
              <i />
              <i />
            </span>
          </span>
        </p>
        {text === undefined ? null : (
          <p class="text" dir="auto" aria-hidden="true">
            {text}
          </p>
        )}
      </div>
    </li>
  )
}

function Face({ entry: { kind, author } }: { entry: RoomEntry }) {
  if (kind === 'reply') return <span class="face bot" aria-hidden="true" />
  const tone = [...author].reduce((sum, letter) => sum + (letter.codePointAt(0) ?? 0), 0) % 6
  return (
    <span class={`face tone-${tone}`} aria-hidden="true">
      {[...author][0]}
    </span>
  )
}

function Files({ files }: { files: readonly RoomFile[] }) {
  return (
    <ul class="files" aria-label="Files">
      {files.map((file) => (
        <li key={file.id}>
          <button type="button" onClick={() => void attempt(() => saveFile(file))}>
            <span class="unseen">Save </span>
            <bdi>{file.name}</bdi> <small>{size(file.size)}</small>
          </button>
        </li>
      ))}
    </ul>
  )
}

function ReceiptLine({ receipt }: { receipt: Receipt }) {
  const { payments, refusals, tokens, cost } = receipt
  const sum = tokens.input + tokens.output
  return (
    <p class="receipt">
      {payments.length === 0 ? <strong class="nobody">Nobody paid</strong> : null}
      {payments.map(({ fingerprint, rule }) => (
        <span key={fingerprint} class="paid">
          Paid by {rule ?? 'a key'} <KeyChip fingerprint={fingerprint} />
        </span>
      ))}
      {Object.entries(refusals).map(([reason, times]) => (
        <span key={reason} class="refusal">
          {reasonWords(reason)}
          {times > 1 ? ` × ${times}` : ''}
        </span>
      ))}
      {sum > 0 ? <span class="fact">{count(sum, 'token')}</span> : null}
      {cost !== null && cost > 0 ? <span class="fact">{money(cost, currency.value)}</span> : null}
      {receipt.state === 'settled' ? <span class="fact">{duration(receipt.durationMs)}</span> : null}
      <span class="fact">{receipt.driver === 'docker' ? 'container' : 'no container'}</span>
    </p>
  )
}
