import { type ScriptedUpstream, scriptedUpstream } from '@sandbox/testing'
import { describe, expect, test } from 'vitest'
import { type BrokerOptions, OwnedIds } from '../src/index.ts'
import { callHeaders, type GuestAnswer } from './support/guest.ts'
import { openRig, turnInput } from './support/rig.ts'
import { event, responseCompleted, responseStream, streams } from './support/sse.ts'

const ANN = { channel: 'web:room', speaker: { id: 'u-ann', name: 'Ann' } }
const BOB = { channel: 'web:room', speaker: { id: 'u-bob', name: 'Ann' } }
const HALL = { channel: 'web:hall', speaker: { id: 'u-ann', name: 'Ann' } }

/** One call of `/v1/responses`, in a turn and on a broker of its own. */
async function call(
  upstream: ScriptedUpstream,
  body: object,
  { context = ANN, ...options }: Partial<BrokerOptions> & { context?: typeof ANN } = {},
): Promise<GuestAnswer> {
  const urls = { modelUrl: `${upstream.url}/v1/x`, responsesUrl: `${upstream.url}/v1/responses` }
  await using rig = await openRig({ ...urls, ...options })
  const { nonce } = rig.broker.bind(turnInput({ context }))
  using guest = rig.guest()
  guest.send({ path: '/v1/responses', headers: callHeaders(nonce), body: { input: 'hi', ...body } })
  const whole = 'stream' in body
  if (whole) await guest.until('response.completed')
  const answer = whole ? { status: Number(guest.received.toString().split(' ')[1]) } : await guest.answer()
  await rig.reported(() => true)
  return answer as GuestAnswer
}

const completed = JSON.parse(responseCompleted('x').split('data: ')[1] ?? '').response
const whole = () => completed
const streamed = streams([...responseStream(['x']), responseCompleted('x')])

describe('issue 4: state on the account, from turn to turn [call:own-ids-only]', () => {
  test.each([
    ['whole', whole, {}],
    ['streamed', streamed, { stream: true }],
  ])('a later turn of the same channel and speaker goes on from a response (%s)', async (_, script, how) => {
    await using upstream = await scriptedUpstream(script)
    const ownedIds = new OwnedIds()
    expect((await call(upstream, { previous_response_id: 'resp_1' }, { ownedIds })).status).toBe(400)
    expect((await call(upstream, how, { ownedIds })).status).toBe(200)
    upstream.script = whole
    expect((await call(upstream, { previous_response_id: 'resp_1' }, { ownedIds })).status).toBe(200)
    expect(JSON.parse(upstream.seen[1]?.body ?? '')).toMatchObject({ previous_response_id: 'resp_1' })
    const reference = { input: [{ type: 'item_reference', id: 'msg_1' }] }
    expect((await call(upstream, reference, { ownedIds })).status).toBe(200)
    for (const context of [BOB, HALL]) {
      for (const body of [{ previous_response_id: 'resp_1' }, reference]) {
        expect((await call(upstream, body, { ownedIds, context })).status).toBe(400)
      }
    }
    expect(upstream.seen).toHaveLength(3)
  })

  test('without the option, a turn knows what it created itself', async () => {
    await using upstream = await scriptedUpstream(whole)
    expect((await call(upstream, {})).status).toBe(200)
    expect((await call(upstream, { previous_response_id: 'resp_1' })).status).toBe(400)
  })

  test('a host says whose a file or a conversation is that it made itself', async () => {
    await using upstream = await scriptedUpstream(whole)
    const ownedIds = new OwnedIds()
    ownedIds.add(ANN, 'conv_1')
    ownedIds.add(ANN, 'file_1')
    const bodies = [
      { conversation: 'conv_1' },
      { conversation: { id: 'conv_1' } },
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] },
    ]
    for (const body of bodies) {
      expect((await call(upstream, body, { ownedIds })).status).toBe(200)
      expect((await call(upstream, body, { ownedIds, context: BOB })).status).toBe(400)
    }
  })

  test('what the guest writes makes nothing its own', async () => {
    await using upstream = await scriptedUpstream(whole)
    const ownedIds = new OwnedIds()
    const said = event({ type: 'response.created', response: { id: 'resp_9' } }, 'response.created')
    await call(upstream, { input: said, metadata: { id: 'resp_9' } }, { ownedIds })
    expect((await call(upstream, { previous_response_id: 'resp_9' }, { ownedIds })).status).toBe(400)
  })

  test('an error of the provider creates nothing', async () => {
    await using upstream = await scriptedUpstream(whole)
    upstream.script = (_, response) => {
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end('{"id":"resp_1","output":[{"id":"msg_1"}]}')
    }
    const ownedIds = new OwnedIds()
    expect((await call(upstream, {}, { ownedIds })).status).toBe(404)
    expect(ownedIds.size).toBe(0)
  })
})

describe('allowStore', () => {
  test.each([
    [undefined, { store: true }, false],
    [false, { store: true }, false],
    [true, { store: true }, true],
    [true, { store: false }, false],
    [true, {}, undefined],
  ])('%s: a guest that sends %j, a provider that sees %s', async (allowStore, body, seen) => {
    await using upstream = await scriptedUpstream(whole)
    await call(upstream, body, allowStore === undefined ? {} : { allowStore })
    expect(JSON.parse(upstream.seen[0]?.body ?? '').store).toBe(seen)
  })
})
