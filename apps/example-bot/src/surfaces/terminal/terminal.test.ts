import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { screenOf } from '../../../test/terminal/screen-of.ts'
import { Ledger } from '../../ledger.ts'
import { Room } from '../room.ts'
import { openTerminal, type Terminal } from './terminal.ts'

const CHANNELS = [
  { key: 'demo:alpha', title: 'alpha', about: 'first', speakers: [{ id: 'u-cleo', name: 'Cleo' }] },
  {
    key: 'demo:team',
    title: 'team',
    about: 'second',
    speakers: [
      { id: 'u-ann', name: 'Ann' },
      { id: 'u-ben', name: 'Ben' },
    ],
  },
] as const

let input: PassThrough
let shown: string
let quits: number
let stops: string[]
let taken: { channel: string; authorId: string; text: string }[]
let room: Room
let ledger: Ledger
let terminal: Terminal

const explain = ({ channel, speaker }: { channel: string; speaker: { id: string } }) =>
  channel === 'demo:team' && speaker.id === 'u-ben'
    ? { rule: 'channel demo:team, speaker u-ben', source: 'file:./ben.key', fingerprint: 'cafe012345678' }
    : { rule: undefined, source: undefined, fingerprint: undefined }

function open(interactive: boolean, colours: boolean, columns = 200): void {
  input = new PassThrough()
  const output = Object.assign(new PassThrough(), { columns })
  shown = ''
  output.on('data', (chunk) => {
    shown += chunk
  })
  terminal = openTerminal({
    room,
    ledger,
    explain,
    stop: (channel) => {
      stops.push(channel)
      return false
    },
    onQuit: () => {
      quits += 1
    },
    input,
    output,
    interactive,
    colours,
  })
}

beforeEach(async () => {
  ;[quits, stops, taken] = [0, [], []]
  ledger = new Ledger({ explain })
  room = new Room({ prefix: 'demo', channels: CHANNELS })
  await room.start(async ({ channel, authorId, text }) => {
    taken.push({ channel, authorId, text })
    await room.sendReply(channel, { chunks: ['an', 'answer\u001b[2J\u202e'] })
  })
})

afterEach(() => terminal.close())

const shows = (text: string) => expect.poll(() => shown).toContain(text)

test('plain text is a message as the chosen speaker in the chosen channel', async () => {
  open(false, false)
  input.write('hello\n/channel team\n/speaker ben\nhi there\n')
  await expect
    .poll(() => taken)
    .toEqual([
      { channel: 'demo:alpha', authorId: 'u-cleo', text: 'hello' },
      { channel: 'demo:team', authorId: 'u-ben', text: 'hi there' },
    ])
  await shows('demo:team Bot: an')
})

test('what a reply says to the terminal is shown, not obeyed', async () => {
  open(false, false)
  input.write('hello\n')
  await shows('answer\u25a1[2J\u25a1')
  expect(shown).not.toContain('\u001b')
  expect(shown).not.toContain('\u202e')
})

test('no line of a reply can pass for one of the terminal, nor the name of a file', async () => {
  open(false, false)
  const files = [{ name: 'a\u001b[31m.txt', data: new Uint8Array(3) }]
  await room.sendReply('demo:alpha', { chunks: ['one\ndemo:team Ann: I pay'], files })
  await shows('demo:alpha Bot: one\n  demo:team Ann: I pay\n  file a\u25a1[31m.txt (3 bytes)\n')
})

test('colours only when asked for', async () => {
  open(false, true)
  input.write('hello\n')
  await shows('\u001b[36mBot:\u001b[39m')
})

test('lists channels and speakers, and refuses unknown ones', async () => {
  open(false, false)
  input.write('/channel\n/channel nope\n/speaker nope\n/nope\n')
  await shows('  team     second')
  await shows('There is no channel nope.')
  await shows('In alpha speak: Cleo.')
  await shows('There is no command /nope.')
  expect(taken).toEqual([])
})

test('says who pays, by rule and fingerprint', async () => {
  open(false, false)
  input.write('/key\n/channel team\n/speaker Ben\n/key\n')
  await shows('Nobody pays here')
  await shows('The rule for channel demo:team, speaker u-ben pays: file:./ben.key, key cafe0123.')
})

test.each(['before', 'after'])(
  'a reply is followed by its receipt, also when the turn settles %s it',
  async (when) => {
    room = new Room({
      prefix: 'demo',
      channels: CHANNELS,
      turnOf: (channel) => ledger.latest(channel)?.turnId,
    })
    open(false, false)
    const turn = {
      turnId: 't',
      channel: 'demo:team',
      speaker: { id: 'u-ben', name: 'Ben' },
      driver: 'process',
    } as const
    const settle = () =>
      ledger.onTurn({
        ...turn,
        state: 'settled',
        durationMs: 12,
        ok: false,
        category: 'credential',
        cause: 'no rule',
      })
    ledger.onTurn({ ...turn, state: 'admitted', durationMs: 0 })
    if (when === 'before') settle()
    await room.sendReply('demo:team', { chunks: ['sorry'] })
    if (when === 'after') settle()
    const receipt = 'demo:team nobody paid · 12 ms · no container · credential: no rule'
    await shows(`demo:team Bot: sorry\n${receipt}\n`)
    expect(shown.split(receipt)).toHaveLength(2)
  },
)

test('/stop reaches the bot, a refused message is told', async () => {
  open(false, false)
  await room.stop()
  input.write('/stop\nhello\n')
  await shows('Nothing runs here.')
  await shows('The bot is not running.')
  expect(stops).toEqual(['demo:alpha'])
})

test('/quit, and the end of input, quit once each; closing does not', async () => {
  open(false, false)
  input.write('/quit\n')
  await expect.poll(() => quits).toBe(1)
  terminal.close()
  expect(quits).toBe(1)
  expect(room.listening).toBe(0)
  open(false, false)
  input.end()
  await expect.poll(() => quits).toBe(2)
})

test('with a person there, lines can be edited and brought back, and Tab completes', async () => {
  open(true, false)
  input.write('helloo\u007f\n')
  await expect.poll(() => taken.map(({ text }) => text)).toEqual(['hello'])
  input.write('\u001b[A again\n')
  await expect.poll(() => taken.map(({ text }) => text)).toEqual(['hello', 'hello again'])
  // Tab completes when it is pressed, not when it is pasted.
  for (const [start, completed] of [
    ['/ch', 'alpha/Cleo> /channel '],
    ['te', 'alpha/Cleo> /channel team'],
    ['\n/sp', 'team/Ann> /speaker '],
    ['B', 'team/Ann> /speaker Ben'],
  ] as const) {
    input.write(start)
    input.write('\t')
    await expect.poll(() => screenOf(shown, 200).at(-1)).toBe(completed.trimEnd())
  }
  input.write('\nhi\n')
  await expect.poll(() => taken.at(-1)).toEqual({ channel: 'demo:team', authorId: 'u-ben', text: 'hi' })
})

test('a line that comes while a longer one is typed stands above it, whole', async () => {
  open(true, false, 20)
  input.write('this is more than one row')
  const typed = ['alpha/Cleo> this is', 'more than one row']
  await expect.poll(() => screenOf(shown, 20)).toEqual(typed)
  terminal.print('news')
  terminal.print('more')
  expect(screenOf(shown, 20)).toEqual(['news', 'more', ...typed])
  input.write('!\n')
  await expect.poll(() => taken.at(-1)?.text).toBe('this is more than one row!')
})

test('with a person there, Ctrl-C quits and the prompt says where one is', async () => {
  open(true, false)
  await shows('alpha/Cleo> ')
  input.write('/channel team\n')
  await shows('team/Ann> ')
  input.write('\u0003')
  await expect.poll(() => quits).toBe(1)
})
