import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { channel, current, drafts, enabled, entries, say, typing } from '../state.ts'
import { Draft, Entry } from './entry.tsx'

/** How many lines are drawn at first, and more by each press. */
const PAGE = 60
/** Within so many pixels of the end, a reader follows what comes. */
const NEAR_END = 120

/** What was said in the channel, the newest last. Long histories are drawn in parts. */
export function Log() {
  const box = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  const pages = useSignal(1)
  const all = entries.value.filter((entry) => entry.channel === current.value)
  const seen = all.slice(-PAGE * pages.value)
  const draft = drafts.value.get(current.value)
  const writing = typing.value.includes(current.value)
  const last = all.at(-1)
  useLayoutEffect(() => {
    const element = box.current
    if (element !== null && (follows.current || last?.kind === 'message'))
      element.scrollTop = element.scrollHeight
  }, [last?.id, draft, writing])
  const onScroll = () => {
    const element = box.current
    if (element === null) return
    follows.current = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_END
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls must be reachable by keyboard in every browser
    <div ref={box} class="log" role="log" aria-labelledby="channel-title" tabIndex={0} onScroll={onScroll}>
      {seen.length < all.length ? (
        <button type="button" class="quiet more" onClick={() => (pages.value += 1)}>
          Show {Math.min(PAGE, all.length - seen.length)} older messages
        </button>
      ) : null}
      {all.length === 0 && !writing ? <Empty /> : null}
      <ol>
        {seen.map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
        {writing ? <Draft text={draft} /> : null}
      </ol>
    </div>
  )
}

function Empty() {
  const off = enabled.value !== undefined && !enabled.value.includes(current.value)
  if (off) return <p class="empty">The sandbox is off in this channel: nobody answers here.</p>
  const { ideas = [] } = channel.value ?? {}
  return (
    <div class="empty">
      <p>Nothing has been said here yet.{ideas.length > 0 ? ' Try one of these:' : ''}</p>
      <ul class="ideas">
        {ideas.map((idea) => (
          <li key={idea}>
            <button type="button" onClick={() => void say(idea)}>
              {idea}
            </button>
          </li>
        ))}
      </ul>
    </div>
  )
}
