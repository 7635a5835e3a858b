import { ChannelList } from './chat/channel-list.tsx'
import { Chat } from './chat/chat.tsx'
import { LivePanel } from './live/live-panel.tsx'
import { announcement, driver, link, trouble, view } from './state.ts'

/** The whole page. */
export function App() {
  return (
    <>
      <a class="skip" href="#message">
        Skip to the message field
      </a>
      <TopBar />
      <NoSandbox />
      <Trouble />
      <main class={`panes show-${view.value}`}>
        <ChannelList />
        <Chat />
        <LivePanel />
      </main>
      <p class="unseen" role="status">
        {announcement}
      </p>
    </>
  )
}

function TopBar() {
  return (
    <header class="top">
      <img src="/icon.svg" alt="" width="26" height="26" />
      <h1>Sandbox bot</h1>
      <ViewSwitch />
      <p class={`pill driver ${driver.value?.isolation ?? ''}`}>
        {DRIVERS[driver.value?.isolation ?? 'unknown']}
      </p>
      <p class={`pill link ${link.value.state}`} role="status">
        {LINKS[link.value.state]}
      </p>
    </header>
  )
}

const DRIVERS = { container: 'Sealed containers', none: 'No sandbox', unknown: '' }
const LINKS = { connecting: 'Connecting', open: 'Live', waiting: 'Reconnecting', refused: 'Refused' }

function ViewSwitch() {
  return (
    <fieldset class="views">
      <legend class="unseen">What to see</legend>
      {(['chat', 'live'] as const).map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={view.value === one}
          onClick={() => {
            view.value = one
          }}
        >
          {one === 'chat' ? 'Chat' : 'Live view'}
        </button>
      ))}
    </fieldset>
  )
}

function NoSandbox() {
  if (driver.value?.isolation !== 'none') return null
  return (
    <p class="alarm" role="alert">
      <strong>This is no sandbox.</strong> The agent runs as a plain process of this machine: it can read
      files and use the network. Do not let strangers talk to it.
    </p>
  )
}

function Trouble() {
  const words =
    link.value.state === 'refused' ? (link.value.message ?? 'The bot refused this page.') : trouble.value
  return (
    <div class="trouble-place" role="alert">
      {words === '' ? null : (
        <p class="trouble">
          <span>{words}</span>
          {trouble.value === '' ? null : (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                trouble.value = ''
                document.getElementById('message')?.focus()
              }}
            >
              Dismiss
            </button>
          )}
        </p>
      )}
    </div>
  )
}
