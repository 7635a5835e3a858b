import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { ask } from '../ask.ts'
import { KeyChip } from '../key-chip.tsx'
import { channel, current, enabled, latest, link, say, speaker, speakers } from '../state.ts'
import type { Payer as PayerAnswer } from '../wire.ts'

/** How often the page asks who pays, so that a changed key file shows. */
const LOOK_MS = 2_000

/** What was typed and not sent, by channel. */
const unsent = new Map<string, string>()

/** Whom to speak as, who pays then, and the field. */
export function Composer() {
  return (
    <div class="composer">
      <div class="who">
        <Speakers />
        <PayerLine />
      </div>
      <Field key={current.value} />
    </div>
  )
}

function Speakers() {
  const chosen = speaker.value
  return (
    <fieldset class="speakers">
      <legend>Speak as</legend>
      {(channel.value?.speakers ?? []).map(({ id, name }) => (
        <label key={`${current.value} ${id}`}>
          <input
            type="radio"
            name="speaker"
            value={id}
            checked={chosen?.id === id}
            onChange={() => {
              speakers.value = { ...speakers.value, [current.value]: id }
            }}
          />
          <bdi>{name}</bdi>
        </label>
      ))}
    </fieldset>
  )
}

function PayerLine() {
  const [key, who, open] = [current.value, speaker.value?.id, link.value.state === 'open']
  const scope = `${key} ${who}`
  const told = useSignal<{ scope: string; payer: PayerAnswer | undefined } | undefined>(undefined)
  const turn = latest.value?.state
  useEffect(() => {
    if (!open || who === undefined) return
    let over = false
    const look = async () => {
      if (document.visibilityState === 'hidden') return
      const path = `/api/key?${new URLSearchParams({ channel: key, speaker: who })}`
      const next = { scope, payer: await ask<PayerAnswer>(path).catch(() => undefined) }
      if (!over && JSON.stringify(next) !== JSON.stringify(told.value)) told.value = next
    }
    void look()
    const timer = setInterval(() => void look(), LOOK_MS)
    return () => {
      over = true
      clearInterval(timer)
    }
  }, [key, who, scope, open, turn, told])
  const payer = told.value?.scope === scope ? told.value.payer : undefined
  return (
    <p class="payer" aria-live="polite">
      {payer === undefined ? null : <PayerWords payer={payer} />}
    </p>
  )
}

function PayerWords({ payer: { rule, fingerprint, problem } }: { payer: PayerAnswer }) {
  if (fingerprint === null) {
    return <span class="nobody">{problem ?? 'Nobody pays here: the model call will be refused.'}</span>
  }
  return (
    <>
      Pays: {rule ?? 'a key'} <KeyChip fingerprint={fingerprint} />
    </>
  )
}

function Field() {
  const key = current.value
  const field = useRef<HTMLTextAreaElement>(null)
  const sending = useRef(false)
  const off = enabled.value !== undefined && !enabled.value.includes(key)
  const send = async () => {
    const element = field.current
    if (element === null || sending.current) return
    sending.current = true
    const text = element.value
    if ((await say(text)) && element.value === text) {
      element.value = ''
      unsent.delete(key)
    }
    sending.current = false
    element.focus()
  }
  return (
    <form
      class="field"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <textarea
        id="message"
        ref={field}
        rows={1}
        maxLength={32_000}
        aria-label="Message"
        placeholder={off ? 'The sandbox is off here: nobody answers' : 'Write a message'}
        defaultValue={unsent.get(key) ?? ''}
        onInput={({ currentTarget }) => unsent.set(key, currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          void send()
        }}
      />
      <button type="submit" class="send">
        Send
      </button>
    </form>
  )
}
