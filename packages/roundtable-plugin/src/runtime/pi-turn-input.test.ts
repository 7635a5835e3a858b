import { expect, test } from 'vitest'
import { GrowingText } from './pi-progress.ts'
import { type PiTurnRequest, piImagesProblem, snapshotPiTurn } from './pi-turn-input.ts'

const png = { mimeType: 'image/png', data: 'AAAA' }
const request = (more: object = {}): PiTurnRequest => ({
  channel: 'a:1',
  profile: 'p',
  speaker: { id: 'u-ann', name: 'Ann' },
  text: 'hello',
  ...more,
})

test('W-04 CS-13 a turn is copied whole: nothing that the caller changes later reaches it', () => {
  const given = {
    ...request(),
    speaker: { id: 'u-ann', name: 'Ann' },
    images: [{ ...png }],
    attachments: [{ name: 'a.txt', mimeType: 'text/plain', data: Uint8Array.from([1]) }],
  }
  const turn = snapshotPiTurn(given)
  given.channel = 'b:2'
  given.text = 'other'
  given.profile = 'q'
  given.speaker.id = 'u-bob'
  given.images[0] = { mimeType: 'image/gif', data: 'BBBB' }
  given.attachments[0]?.data.fill(9)
  given.attachments.push({ name: 'b', mimeType: 'x', data: new Uint8Array() })
  expect(turn).toMatchObject({
    channel: 'a:1',
    text: 'hello',
    profile: 'p',
    speaker: { id: 'u-ann', name: 'Ann' },
    images: [png],
    attachments: [{ name: 'a.txt', mimeType: 'text/plain', data: Uint8Array.from([1]) }],
  })
  expect(turn.attachments).toHaveLength(1)
  for (const part of [turn, turn.speaker, turn.images, turn.images[0], turn.attachments]) {
    expect(Object.isFrozen(part)).toBe(true)
  }
})

test('CS-21 a Pi turn has no principalId, whoever gives one', () => {
  const speaker = { id: 'u-ann', name: 'Ann', principalId: 'p-1' }
  expect(snapshotPiTurn(request({ speaker })).speaker).toEqual({ id: 'u-ann', name: 'Ann' })
})

test('every field of a request is read once: a getter cannot answer twice', () => {
  let reads = 0
  const sly = {
    ...request(),
    get text() {
      reads += 1
      return reads === 1 ? 'short' : 'x'.repeat(200_000)
    },
  }
  expect(snapshotPiTurn(sly).text).toBe('short')
})

test.each<[string, object, RegExp]>([
  ['text', { text: 'x'.repeat(100_001) }, /text has at most 100000/],
  ['text type', { text: 7 }, /text must be a string/],
  ['signal', { signal: {} }, /signal must be an AbortSignal/],
  ['onProgress', { onProgress: 5 }, /onProgress must be a function/],
  ['turnId', { turnId: '../up' }, /turnId/],
  ['turnId length', { turnId: 'x'.repeat(65) }, /turnId/],
  ['turnId characters', { turnId: 'a b' }, /turnId/],
  ['channel', { channel: 'nothing' }, /channel/],
  ['speaker id', { speaker: { id: 'x'.repeat(257), name: 'n' } }, /speaker/],
  ['speaker name', { speaker: { id: 'x', name: 'n'.repeat(257) } }, /speaker/],
  ['too many images', { images: Array(9).fill(png) }, /images are at most 8/],
  ['images that are no list', { images: 'AAAA' }, /images/],
  ['attachment name', { attachments: [{ name: '../x', data: new Uint8Array(1) }] }, /attachments\[0\]/],
  [
    'attachment name bytes',
    { attachments: [{ name: '猫'.repeat(100), data: new Uint8Array(1) }] },
    /safe name/,
  ],
  ['attachment data', { attachments: [{ name: 'x', data: 'text' }] }, /Uint8Array/],
  ['attachment that is none', { attachments: [undefined] }, /attachments\[0\]/],
  ['same names', { attachments: Array(2).fill({ name: 'x', data: new Uint8Array(1) }) }, /different names/],
  ['too many', { attachments: Array(21).fill({ name: 'x', data: new Uint8Array(1) }) }, /at most 20/],
])('PR-10 MD-01 MD-02 refused: %s', (_, more, message) => {
  expect(() => snapshotPiTurn(request(more))).toThrow(message)
})

test.each<[string, unknown]>([
  ['type', { ...png, mimeType: 'image/svg+xml' }],
  ['base64', { ...png, data: 'AAA' }],
  ['size', { ...png, data: '' }],
  ['kind', null],
])('MD-02 an image of a wrong %s is refused, once its turn is admitted', async (_, image) => {
  const { signal } = new AbortController()
  const { images } = snapshotPiTurn(request({ images: [png, image] } as object))
  expect(await piImagesProblem(images, signal)).toMatchObject({
    code: 'input_invalid',
    message: /^images\[1\]/,
  })
  expect(await piImagesProblem(snapshotPiTurn(request({ images: [png] })).images, signal)).toBeUndefined()
  expect(await piImagesProblem(images, AbortSignal.abort())).toBeUndefined()
})

test('MD-02 others run while large images are looked at', async () => {
  const data = 'A'.repeat(16 * 2 ** 20)
  const { images } = snapshotPiTurn(request({ images: Array(4).fill({ ...png, data }) }))
  let others = 0
  const run = () => {
    others += 1
    timer = setImmediate(run)
  }
  let timer = setImmediate(run)
  expect(await piImagesProblem(images, new AbortController().signal)).toBeUndefined()
  clearImmediate(timer)
  expect(others).toBeGreaterThan(0)
})

test('a piece of the answer says where it begins: a lost one leaves a hole, and 0 starts anew', () => {
  const text = new GrowingText()
  expect(text.add(0, 'Hel')).toEqual({ text: 'Hel', hole: false })
  expect(text.add(3, 'lo')).toEqual({ text: 'Hello', hole: false })
  expect(text.add(4, 'p')).toEqual({ text: 'Hellp', hole: false })
  expect(text.add(9, '!')).toEqual({ text: 'Hellp!', hole: true })
  expect(text.add(6, '?')).toEqual({ text: 'Hellp!?', hole: true })
  expect(text.add(0, 'New')).toEqual({ text: 'New', hole: false })
  expect(text.add(0, 'x'.repeat(200_000)).text).toHaveLength(100_000)
})
