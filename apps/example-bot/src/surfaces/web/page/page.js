/** The page: what it knows, and what a person does. The server's events are the only source of what was said. */

import { follow } from './feed.js'
import { channelItem, entryItem, keyChip, make, receiptLine, roadItems, speakerChoice } from './view.js'

const at = (id) => document.getElementById(id)

const known = {
  channels: [],
  entries: [],
  receipts: new Map(),
  latest: new Map(),
  typing: new Set(),
  unread: new Set(),
  drafts: new Map(),
  speakers: new Map(),
  current: undefined,
}

/** The token comes after the # of the address and is kept for this tab only. */
function takeToken() {
  if (location.hash.length > 20) {
    sessionStorage.setItem('token', location.hash.slice(1))
    history.replaceState(undefined, '', location.pathname)
  }
  return sessionStorage.getItem('token') ?? ''
}

const headers = { 'x-demo-token': takeToken() }

async function ask(path, body) {
  const response = await fetch(path, {
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error?.message ?? 'The bot refused.')
  return answer
}

// What the server says

const handlers = {
  snapshot(data) {
    known.channels = data.channels
    known.entries = data.entries
    known.receipts = new Map(data.receipts.map((receipt) => [receipt.turnId, receipt]))
    known.latest = new Map(data.receipts.map((receipt) => [receipt.channel, receipt]))
    known.typing = new Set(data.typing)
    known.current ??= known.channels[0]?.key
    showDriver(data.driver)
    showChannel()
  },
  entry({ entry }) {
    known.entries.push(entry)
    if (entry.channel === known.current) {
      addEntry(entry)
      showTurn()
    } else {
      known.unread.add(entry.channel)
    }
    showChannels()
  },
  typing({ channel, on }) {
    if (on) known.typing.add(channel)
    else known.typing.delete(channel)
    showChannels()
    showTurn()
  },
  turn({ receipt }) {
    known.receipts.set(receipt.turnId, receipt)
    known.latest.set(receipt.channel, receipt)
    if (receipt.channel !== known.current) return
    showTurn()
    const entry = known.entries.find((one) => one.turnId === receipt.turnId)
    if (entry === undefined) return
    const item = at(`entry-${entry.id}`)
    item?.classList.toggle('failed', receipt.ok === false)
    item?.querySelector('.receipt')?.replaceWith(receiptLine(receipt))
    if (receipt.state === 'settled') void showPayer()
  },
}

function showLink(state, message) {
  const link = at('link')
  link.textContent = { open: 'Connected', waiting: 'Connecting', refused: 'Refused' }[state]
  link.className = `pill ${state}`
  document.querySelector('main').inert = state === 'refused'
  showTrouble(
    state === 'refused'
      ? message
      : state === 'waiting'
        ? 'The bot does not answer. Is it still running?'
        : '',
  )
}

function showTrouble(text) {
  at('trouble').textContent = text
  at('trouble').hidden = text === ''
}

// What is shown

function showDriver(driver) {
  const sealed = driver.isolation === 'container'
  at('driver').textContent = sealed ? 'One sealed container per turn' : 'Plain process: no sandbox'
  at('driver').className = `pill ${sealed ? 'open' : 'refused'}`
  at('no-sandbox').hidden = sealed
}

function channel() {
  return known.channels.find((one) => one.key === known.current)
}

function showChannels() {
  const focused = document.activeElement?.closest('#channels button')
  const index = focused === null ? -1 : [...at('channels').querySelectorAll('button')].indexOf(focused)
  at('channels').replaceChildren(
    ...known.channels.map((one) =>
      channelItem(one, {
        current: one.key === known.current,
        unread: known.unread.has(one.key),
        busy: known.typing.has(one.key),
        onChoose: () => choose(one.key),
      }),
    ),
  )
  if (index >= 0) at('channels').querySelectorAll('button')[index]?.focus()
}

function choose(key) {
  known.drafts.set(known.current, at('text').value)
  known.current = key
  showChannel()
  at('text').value = known.drafts.get(key) ?? ''
}

function showChannel() {
  const shown = channel()
  if (shown === undefined) return
  known.unread.delete(shown.key)
  at('channel-title').textContent = `# ${shown.title}`
  at('channel-about').textContent = shown.about
  at('log').replaceChildren()
  for (const entry of known.entries) if (entry.channel === shown.key) addEntry(entry)
  showEmpty()
  showChannels()
  showSpeakers(shown)
  showTurn()
  at('scroll').scrollTop = at('scroll').scrollHeight
}

function addEntry(entry) {
  const scroll = at('scroll')
  const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80
  at('log').append(entryItem(entry, known.receipts.get(entry.turnId)))
  showEmpty()
  if (atEnd || entry.kind === 'message') scroll.scrollTop = scroll.scrollHeight
}

function showEmpty() {
  const empty = at('log').childElementCount === 0
  at('empty').hidden = !empty
  if (!empty) return
  at('ideas').replaceChildren(
    ...(channel()?.ideas ?? []).map((idea) =>
      make('li', {}, make('button', { type: 'button', onclick: () => say(idea) }, idea)),
    ),
  )
}

function speaker() {
  const shown = channel()
  const id = known.speakers.get(shown?.key)
  return shown?.speakers.find((one) => one.id === id) ?? shown?.speakers[0]
}

function showSpeakers(shown) {
  const chosen = speaker()
  at('speakers').replaceChildren(
    at('speakers').querySelector('legend'),
    ...shown.speakers.map((one) =>
      speakerChoice(one, {
        checked: one.id === chosen?.id,
        onChoose: () => {
          known.speakers.set(shown.key, one.id)
          void showPayer()
        },
      }),
    ),
  )
  void showPayer()
}

async function showPayer() {
  const [shown, who] = [channel(), speaker()]
  if (shown === undefined || who === undefined) return
  try {
    const key = await ask(`/api/key?${new URLSearchParams({ channel: shown.key, speaker: who.id })}`)
    if (channel() !== shown || speaker() !== who) return
    const found = key.fingerprint !== null
    at('payer').className = `payer${found ? '' : ' nobody'}`
    if (found)
      at('payer').replaceChildren(
        'Pays: ',
        make('span', {}, key.rule ?? 'a key'),
        ' ',
        keyChip(key.fingerprint),
      )
    else at('payer').replaceChildren(key.problem ?? 'Nobody pays here: the model call will be refused.')
  } catch {
    at('payer').replaceChildren()
  }
}

function showTurn() {
  const receipt = known.latest.get(known.current)
  const running = receipt !== undefined && receipt.state !== 'settled'
  at('turn').hidden = receipt === undefined
  at('turn').classList.toggle('running', running)
  at('stop').hidden = !running
  if (receipt === undefined) return
  at('road').replaceChildren(...roadItems(receipt))
  at('turn-time').textContent = running ? '' : `${receipt.durationMs} ms`
}

// What a person does

async function say(text) {
  const [shown, who] = [channel(), speaker()]
  if (shown === undefined || who === undefined || text.trim() === '') return false
  try {
    await ask('/api/messages', { channel: shown.key, speaker: who.id, text })
    showTrouble('')
    return true
  } catch (error) {
    showTrouble(error.message)
    return false
  }
}

async function send() {
  const text = at('text').value
  if (await say(text)) at('text').value = ''
  at('text').focus()
}

at('composer').addEventListener('submit', (event) => {
  event.preventDefault()
  void send()
})
at('text').addEventListener('keydown', (event) => {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  void send()
})
at('stop').addEventListener('click', async () => {
  try {
    await ask('/api/stop', { channel: known.current })
  } catch (error) {
    showTrouble(error.message)
  }
})

// A scrolling list must be reachable by keyboard in every browser.
at('scroll').tabIndex = 0

void follow({
  headers,
  onState: showLink,
  onEvent: (type, data) => handlers[type]?.(data),
})
