import { expect, test } from 'vitest'
import { message, recordingLogger } from '../../test/messages.ts'
import type { CollectedAttachments } from '../attachments/index.ts'
import type { ChannelKey, OutboundReply } from '../host-contract.ts'
import type { PiTurnReply } from '../runtime/pi-runtime.ts'
import type { PiTurnRequest } from '../runtime/pi-turn-input.ts'
import { AdmissionLimits } from './admission-limits.ts'
import { type PiClaimParts, piClaim } from './pi-claim.ts'

type Run = (request: PiTurnRequest) => Promise<PiTurnReply>

const hi: PiTurnReply = { ok: true, text: 'hi', files: [], leftOut: 0 }
const failed = (text: string): PiTurnReply => ({ ok: false, text, category: 'stopped' }) as PiTurnReply

function claimWith(run: Run, options: Partial<PiClaimParts> & { files?: boolean; failSend?: boolean } = {}) {
  const { files = false, failSend = false, ...parts } = options
  const on = new Set<ChannelKey>(['fake:1'])
  const sent: OutboundReply[] = []
  const shown: string[] = []
  const requests: PiTurnRequest[] = []
  const fresh: ChannelKey[] = []
  const { logger, lines } = recordingLogger()
  const claim = piClaim({
    channels: on,
    runtime: {
      runTurn: (request) => {
        requests.push(request)
        return run(request)
      },
      startFresh: async (channel) => void fresh.push(channel),
      deleteConversation: async () => {},
    },
    surfaces: {
      of: () => ({ supportsFiles: files }),
      async sendReply(_channel, reply) {
        if (failSend) throw new TypeError('surface down, token=abcdefgh12345')
        sent.push(reply)
      },
      startTyping: () => {
        shown.push('typing')
        return () => shown.push('typing ends')
      },
      showStop: () => {
        shown.push('stop button')
        return () => shown.push('stop button goes')
      },
    },
    logger,
    profileOf: () => 'default',
    scrub: (text) => text.replaceAll(/token=\S+/g, '[redacted]'),
    ...parts,
  })
  return { claim, on, sent, shown, requests, fresh, lines }
}

test('PL-05 the claim stands above the agent server and owns enabled channels, with or without a space', async () => {
  const { claim, fresh } = claimWith(async () => hi)
  expect([claim.priority, claim.postsInPlace, claim.owns('fake:1'), claim.owns('fake:2', 'space')]).toEqual([
    200,
    true,
    true,
    false,
  ])
  expect(await claim.startFresh('fake:1')).toBe('pi-sandbox')
  expect(fresh).toEqual(['fake:1'])
  expect(await claim.background?.({} as never)).toMatchObject({ status: 'skipped' })
})

test.each([
  [{}, true],
  [{ mentionsBot: false }, false],
  [{ authorIsBot: true }, false],
  [{ integration: { id: 'w', own: false } }, false],
  [{ isDirect: true }, false],
  [{ channel: 'fake:2' as const }, false],
])('PL-06 addressed: %j', (parts, addressed) => {
  expect(claimWith(async () => hi).claim.admit(message(parts)) !== undefined).toBe(addressed)
})

test('PL-15 CS-21 on a host that resolves speakers, only theirs are answered', () => {
  const { claim } = claimWith(async () => hi, { needsSpeaker: true })
  expect(claim.admit(message())).toBeUndefined()
  expect(claim.admit(message({ speaker: { id: 'u-ann', name: 'Ann', tier: 'member' } }))).toBeDefined()
})

test('W-04 a turn is asked for with the message as it was admitted, by its own speaker', async () => {
  const { claim, requests, sent, shown } = claimWith(async () => hi)
  const given = message()
  const admitted = claim.admit(given)
  given.text = 'changed'
  given.authorId = 'u-eve'
  await admitted?.run()
  expect(requests).toMatchObject([
    { channel: 'fake:1', profile: 'default', speaker: { id: 'u-ann', name: 'Ann' }, text: 'hello' },
  ])
  expect(sent).toEqual([{ chunks: ['hi'] }])
  expect(shown).toEqual(['typing', 'stop button', 'stop button goes', 'typing ends'])
})

test('PL-06 what a surface added to a message need not be one that can be copied', async () => {
  const { claim, requests } = claimWith(async () => hi)
  const raw = { reply: () => {} }
  await claim.admit(Object.assign(message(), { raw }))?.run()
  expect(requests).toMatchObject([{ text: 'hello' }])
})

test('PL-09 a surface that cannot show typing or a stop button costs no turn', async () => {
  const broken = () => {
    throw new TypeError('gone, token=abcdefgh12345')
  }
  const sent: OutboundReply[] = []
  const { claim, lines } = claimWith(async () => hi, {
    surfaces: {
      of: () => undefined,
      sendReply: async (_channel, reply) => void sent.push(reply),
      startTyping: () => broken,
      showStop: broken,
    },
  })
  await claim.admit(message())?.run()
  expect(sent).toEqual([{ chunks: ['hi'] }])
  expect(lines.filter((line) => JSON.stringify(line).includes('gone, [redacted]'))).toHaveLength(2)
  expect(claim.stop?.('fake:1')).toBe(false)
})

test('PL-07 a turn that waited while the channel was turned off is not run', async () => {
  const { claim, on, requests, sent } = claimWith(async () => hi)
  const admitted = claim.admit(message())
  on.clear()
  await admitted?.run()
  expect([requests, sent]).toEqual([[], []])
})

test('stop answers at once, and only for a turn that runs; the turn’s own words follow', async () => {
  const started = Promise.withResolvers<void>()
  const { claim, sent } = claimWith(({ signal }) => {
    started.resolve()
    return new Promise((done) =>
      signal?.addEventListener('abort', () => done(failed('Stopped.')), { once: true }),
    )
  })
  expect(claim.stop?.('fake:1')).toBe(false)
  const turn = claim.admit(message())?.run()
  await started.promise
  expect([claim.stop?.('fake:2'), claim.stop?.('fake:1'), claim.stop?.('fake:1')]).toEqual([
    false,
    true,
    false,
  ])
  await turn
  expect([sent, claim.stop?.('fake:1')]).toEqual([[{ chunks: ['Stopped.'] }], false])
})

test('stop also ends the fetching of what came with a message', async () => {
  const fetching = Promise.withResolvers<void>()
  const { claim, requests } = claimWith(async () => failed('Stopped.'), {
    collect: (_message, signal) => {
      fetching.resolve()
      return new Promise((_done, fail) =>
        signal.addEventListener('abort', () => fail(signal.reason), { once: true }),
      )
    },
  })
  const turn = claim.admit(message({ attachments: [{ url: 'https://a.test/x', name: 'x', size: 1 }] }))?.run()
  await fetching.promise
  expect(claim.stop?.('fake:1')).toBe(true)
  await turn
  expect(requests[0]?.signal?.aborted).toBe(true)
})

const file = (name: string) => ({ name, data: Uint8Array.of(1) })

test('MD-03 files go with the reply where the surface takes some', async () => {
  const { claim, sent } = claimWith(
    async () => ({ ok: true, text: 'see', files: [file('a.png')], leftOut: 0 }),
    { files: true },
  )
  await claim.admit(message())?.run()
  expect(sent).toEqual([{ chunks: ['see'], files: [{ name: 'a.png', data: Uint8Array.of(1) }] }])
})

test.each([
  [1, 0, '1 file could'],
  [2, 1, '3 files could'],
])(
  'W-54 %i files that cannot be posted and %i left out are mentioned, and the text is there',
  async (count, leftOut, words) => {
    const files = Array.from({ length: count }, (_, n) => file(`${n}.txt`))
    const { claim, sent } = claimWith(async () => ({ ok: true, text: 'see', files, leftOut }))
    await claim.admit(message())?.run()
    expect(sent).toEqual([{ chunks: [expect.stringMatching(new RegExp(`^see\\n\\n\\(${words}`))] }])
  },
)

const collected: CollectedAttachments = {
  attachments: [{ name: 'm-1-0-a.txt', mimeType: 'text/plain', data: Uint8Array.of(1) }],
  images: [{ mimeType: 'image/png', data: 'AQ==' }],
  failures: [{ name: 'b', reason: 'too_large', text: 'b: too large' }],
}
const attached = message({ attachments: [{ url: 'https://a.test/x', name: 'x', size: 1 }] })

test('AT-08 what came with a message goes with its turn, and what did not is told to the agent', async () => {
  const { claim, requests } = claimWith(async () => hi, { collect: async () => collected })
  await claim.admit(attached)?.run()
  expect(requests[0]).toMatchObject({ attachments: collected.attachments, images: collected.images })
  expect(requests[0]?.text).toBe(
    'hello\n\n[Not everything that came with this message is there:]\n> b: too large',
  )
})

test('AT-08 a fetch that fails as a whole is logged, and the message is answered', async () => {
  const { claim, requests, sent, lines } = claimWith(async () => hi, {
    collect: () => Promise.reject(new TypeError('no, token=abcdefgh12345')),
  })
  await claim.admit(attached)?.run()
  expect(requests[0]?.text).toContain('They were not downloaded')
  expect([sent, lines]).toMatchObject([
    [{ chunks: ['hi'] }],
    [{ level: 'error', fields: { cause: 'no, [redacted]' } }],
  ])
})

test('nothing is fetched for a message without attachments, nor where that is off', async () => {
  let fetched = 0
  const { claim } = claimWith(async () => hi, {
    collect: async () => {
      fetched += 1
      return collected
    },
  })
  await claim.admit(message())?.run()
  expect(fetched).toBe(0)
  const off = claimWith(async () => hi)
  await off.claim.admit(attached)?.run()
  expect(off.requests[0]).not.toHaveProperty('attachments')
})

test('the growing answer is passed on with its channel', async () => {
  const seen: unknown[] = []
  const progress = { turnId: 't', text: 'h', hole: false }
  const growing: Run = async ({ onProgress }) => {
    onProgress?.(progress)
    return hi
  }
  const { claim } = claimWith(growing, { onProgress: (...one) => void seen.push(one) })
  await claim.admit(message())?.run()
  expect(seen).toEqual([['fake:1', progress]])
})

test('W-77 a reply that cannot be delivered is reported as that', async () => {
  const { claim, lines, shown } = claimWith(async () => hi, { failSend: true })
  await claim.admit(message())?.run()
  expect(lines).toMatchObject([
    { level: 'error', fields: { category: 'delivery', cause: 'surface down, [redacted]' } },
  ])
  expect(shown.at(-1)).toBe('typing ends')
})

test('a message beyond the limits is not taken, and its speaker is told', async () => {
  const { claim, sent } = claimWith(async () => hi, { limits: new AdmissionLimits({ waitingPerSpeaker: 1 }) })
  const waiting = claim.admit(message())
  expect(claim.admit(message())).toBeUndefined()
  expect(sent).toMatchObject([{ chunks: [expect.stringContaining('did not take this one')] }])
  await waiting?.run()
  expect(claim.admit(message())).toBeDefined()
})

test('a message that cannot be copied does not count, and nothing is thrown into the host', () => {
  const { claim, lines } = claimWith(async () => hi, {
    limits: new AdmissionLimits({ waitingPerSpeaker: 1 }),
  })
  expect(claim.admit({ ...message(), attachments: null as never })).toBeUndefined()
  expect(lines).toMatchObject([{ level: 'warn', fields: { cause: expect.any(String) } }])
  expect(claim.admit(message())).toBeDefined()
})

test('a host that drops a message gives its place back, and one that runs it twice has it answered once', async () => {
  const { claim, sent } = claimWith(async () => hi, { limits: new AdmissionLimits({ waitingPerSpeaker: 1 }) })
  claim.admit(message())?.dropped?.()
  const admission = claim.admit(message())
  await Promise.all([admission?.run(), admission?.run()])
  expect(sent).toEqual([{ chunks: ['hi'] }])
})
