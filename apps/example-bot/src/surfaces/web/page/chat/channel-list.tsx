import { channels, choose, current, enabled, typing, unread } from '../state.ts'
import type { RoomChannel } from '../wire.ts'

/** The channels, with what is new and where an answer is being written. */
export function ChannelList() {
  return (
    <nav class="channels" aria-label="Channels">
      <ul>
        {channels.value.map((one) => (
          <Item key={one.key} channel={one} />
        ))}
      </ul>
    </nav>
  )
}

function Item({ channel: { key, title, about } }: { channel: RoomChannel }) {
  const off = enabled.value !== undefined && !enabled.value.includes(key)
  const isNew = unread.value.has(key)
  return (
    <li>
      <button
        type="button"
        aria-current={current.value === key ? 'true' : undefined}
        onClick={() => choose(key)}
      >
        <span class={`name ${isNew ? 'new' : ''}`}>
          <span class="hash" aria-hidden="true">
            #
          </span>
          <bdi>{title}</bdi>
          {off ? <span class="tag">off</span> : null}
          {isNew ? (
            <span class="dot">
              <span class="unseen">, new messages</span>
            </span>
          ) : null}
          {typing.value.includes(key) ? (
            <span class="busy">
              <span class="unseen">, answering</span>
            </span>
          ) : null}
        </span>
        <span class="about">{about}</span>
      </button>
    </li>
  )
}
