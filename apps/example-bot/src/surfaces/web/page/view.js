/** Makes the page's elements. Text only ever goes in as text. */

/** An element with properties and children. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith('aria-') || name === 'for') element.setAttribute(name, value)
    else element[name] = value
  }
  element.append(...children)
  return element
}

const keyColours = new Map()

/** A key's fingerprint as a chip; every key of this page has a colour of its own, as long as there are enough. */
export function keyChip(fingerprint) {
  if (!keyColours.has(fingerprint)) keyColours.set(fingerprint, keyColours.size % 6)
  return make('span', { className: `key key-${keyColours.get(fingerprint)}` }, fingerprint.slice(0, 8))
}

/** One channel in the list. */
export function channelItem(channel, { current, unread, busy, onChoose }) {
  const button = make(
    'button',
    { type: 'button', onclick: onChoose, className: unread ? 'unread' : '' },
    make('span', { className: 'name' }, channel.title),
    make('span', { className: 'about' }, channel.about),
  )
  if (busy) button.append(make('span', { className: 'busy', title: 'answering' }, '…'))
  if (unread) button.append(make('span', { className: 'dot' }, make('span', { className: 'unseen' }, 'new')))
  if (current) button.setAttribute('aria-current', 'true')
  return make('li', {}, button)
}

/** One line of a channel. */
export function entryItem(entry, receipt) {
  const time = new Date(entry.at)
  const head = make(
    'p',
    { className: 'head' },
    make('span', { className: 'author' }, entry.author),
    make(
      'time',
      { dateTime: entry.at, title: time.toLocaleString() },
      time.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }),
    ),
  )
  const body = make('div', {}, head, make('p', { className: 'text' }, entry.text))
  if (entry.kind === 'reply') body.append(receiptLine(receipt))
  return make(
    'li',
    { className: `entry ${entry.kind}${receipt?.ok === false ? ' failed' : ''}`, id: `entry-${entry.id}` },
    make(
      'span',
      { className: 'face', ariaHidden: 'true' },
      entry.kind === 'reply' ? '◆' : entry.author.slice(0, 1),
    ),
    body,
  )
}

/** The host's reasons for turning a call down, in words; others are shown as they are. */
const REASONS = {
  credential_missing: 'refused: no key',
  reflection: 'answer held back: it carried the key',
  upstream_status: 'the model service refused',
  upstream_network: 'the model service was not reached',
  budget_spent: 'refused: too many calls',
}

/** Who paid for a reply, and what it took. */
export function receiptLine(receipt) {
  const line = make('p', { className: 'receipt' })
  if (receipt === undefined) return line
  if (receipt.payments.length === 0) line.append(make('strong', {}, 'Nobody paid'))
  for (const payment of receipt.payments) {
    line.append(
      make(
        'span',
        {},
        payment.rule === undefined ? 'Paid by a key ' : `Paid by ${payment.rule} `,
        keyChip(payment.fingerprint),
      ),
    )
  }
  for (const [reason, times] of Object.entries(receipt.refusals)) {
    const words = `${REASONS[reason] ?? reason.replaceAll('_', ' ')}${times > 1 ? ` × ${times}` : ''}`
    line.append(make('span', { className: 'refusal' }, words))
  }
  for (const fact of facts(receipt)) line.append(make('span', { className: 'fact' }, fact))
  return line
}

function facts(receipt) {
  const list = []
  if (receipt.modelCalls > 0) list.push(count(receipt.modelCalls, 'model call'))
  if (receipt.toolCalls.length > 0) list.push(`tools: ${receipt.toolCalls.join(', ')}`)
  const tokens = receipt.tokens.input + receipt.tokens.output
  if (tokens > 0) list.push(count(tokens, 'token'))
  if (receipt.state === 'settled') list.push(`${receipt.durationMs} ms`)
  list.push(receipt.driver === 'docker' ? 'container' : 'no container')
  return list
}

function count(number, word) {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

/** Someone to speak as. */
export function speakerChoice(speaker, { checked, onChoose }) {
  const input = make('input', {
    type: 'radio',
    name: 'speaker',
    value: speaker.id,
    checked,
    onchange: onChoose,
  })
  return make('label', {}, input, make('span', {}, speaker.name))
}

const ROAD = [
  ['admitted', 'taken'],
  ['starting', 'worker starts'],
  ['bound', 'bound to the speaker'],
  ['answering', 'agent works'],
  ['settling', 'worker removed'],
  ['settled', 'done'],
]

/** The states of a turn, with the one that it is in. */
export function roadItems(receipt) {
  const at = ROAD.findIndex(([state]) => state === receipt.state)
  return ROAD.map(([, label], index) => {
    const item = make('li', { className: index < at || receipt.state === 'settled' ? 'past' : '' }, label)
    if (index === at) item.setAttribute('aria-current', 'step')
    return item
  })
}
