import { expect, test } from 'vitest'
import { openRig, turnInput } from './support/rig.ts'

test('W-10 a refusal keeps its reason when the guest hangs up on it', async () => {
  await using rig = await openRig()
  const { nonce } = rig.broker.bind(turnInput())
  using guest = rig.guest()
  // Announces more than is allowed, sends little, and leaves as soon as something comes back.
  guest.write(
    `POST /model HTTP/1.1\r\nhost: broker\r\nx-sandbox-turn: ${nonce}\r\ncontent-length: 300000\r\n\r\n{`,
  )
  await new Promise((resolve) => guest.socket.once('data', resolve))
  guest.socket.destroy()
  const event = await rig.reported(({ route }) => route === 'model')
  expect(event).toMatchObject({ status: 0, reason: 'body_too_large' })
})
