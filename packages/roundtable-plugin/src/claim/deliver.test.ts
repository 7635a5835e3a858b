import { redact } from '@sandbox/credential-scope'
import { expect, test } from 'vitest'
import { recordingLogger } from '../../test/messages.ts'
import { deliver } from './deliver.ts'

test('W-77 a reply that is never posted is reported, and its channel goes on', async () => {
  const { logger, lines } = recordingLogger()
  const surfaces = { sendReply: () => new Promise<never>(() => {}) }
  await deliver({ surfaces, logger, scrub: (text) => text, deliveryMs: 1 }, 'fake:1', { chunks: ['hi'] })
  expect(lines).toEqual([
    {
      level: 'error',
      fields: { channel: 'fake:1', category: 'delivery', cause: 'it was not taken within 1 ms' },
      message: 'a reply could not be delivered',
    },
  ])
})

test('W-77 a surface that throws at once, or fails after it was given up, disturbs nobody', async () => {
  const { logger, lines } = recordingLogger()
  const fail = Promise.withResolvers<void>()
  const throwing = {
    sendReply: () => {
      throw new TypeError('down')
    },
  }
  const parts = { logger, scrub: (text: string) => text, deliveryMs: 1 }
  await deliver({ ...parts, surfaces: throwing }, 'fake:1', { chunks: ['hi'] })
  await deliver({ ...parts, surfaces: { sendReply: () => fail.promise } }, 'fake:1', { chunks: ['hi'] })
  fail.reject(new TypeError('late'))
  await new Promise((done) => setImmediate(done))
  expect(lines.map(({ fields }) => fields.cause)).toEqual(['down', 'it was not taken within 1 ms'])
})

test.each([
  ['nothing that is text', Object.create(null), 'an error that cannot be shown'],
  ['a message that is no text', Object.assign(new Error(), { message: { code: 7 } }), '[object Object]'],
  ['nothing at all', undefined, 'undefined'],
])('W-77 deliver never rejects, also where a surface rejects with %s', async (_, error, cause) => {
  const { logger, lines } = recordingLogger()
  const surfaces = { sendReply: () => Promise.reject(error) }
  await deliver({ surfaces, logger, scrub: redact }, 'fake:1', { chunks: ['hi'] })
  expect(lines).toMatchObject([{ level: 'error', fields: { cause } }])
})
