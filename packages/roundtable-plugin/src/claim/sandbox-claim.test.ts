import { limits } from '@sandbox/protocol'
import { expect, test } from 'vitest'
import { message, recordingLogger } from '../../test/messages.ts'
import { SandboxPluginError } from '../errors.ts'
import type { ChannelKey, OutboundReply } from '../host-contract.ts'
import type { TurnReply } from '../runtime/sealed-runtime.ts'
import { CleanupFailed } from '../runtime/turn-failure.ts'
import { snapshotTurn } from '../runtime/turn-snapshot.ts'
import { isSandboxAddress } from './address.ts'
import { AdmissionLimits } from './admission-limits.ts'
import { NOT_TAKEN_TEXT, STOPPING_TEXT, THROWN_TEXT, TOO_LONG_TEXT } from './answer.ts'
import { sandboxClaim } from './sandbox-claim.ts'

type Run = (channel: ChannelKey, speaker: { id: string; name: string }, text: string) => Promise<TurnReply>

function claimWith(
  run: Run,
  options: {
    needsSpeaker?: boolean
    failSend?: boolean
    failTyping?: boolean
    hide?: () => unknown
    limits?: AdmissionLimits
  } = {},
) {
  const on = new Set<ChannelKey>(['fake:1'])
  const sent: OutboundReply[] = []
  const typing: string[] = []
  const fresh: ChannelKey[] = []
  const { logger, lines } = recordingLogger()
  const claim = sandboxClaim({
    channels: on,
    runtime: {
      runTurn: run,
      startFresh: (channel) => void fresh.push(channel),
      stop: (channel) => channel === 'fake:1',
      deleteConversation: async () => {},
    },
    surfaces: {
      async sendReply(_channel, reply) {
        if (options.failSend === true) throw new TypeError('surface down, token=abcdefgh12345')
        sent.push(reply)
      },
      startTyping(channel) {
        if (options.failTyping === true) throw new TypeError('no typing here')
        typing.push(`start ${channel}`)
        if (options.hide !== undefined) return options.hide as () => void
        return () => typing.push(`stop ${channel}`)
      },
    },
    logger,
    needsSpeaker: options.needsSpeaker ?? false,
    ...(options.limits && { limits: options.limits }),
    scrub: (text) => text.replaceAll(/token=\S+/g, '[redacted]'),
  })
  return { claim, on, sent, typing, lines, fresh }
}

const answers: Run = async () => ({ ok: true, text: 'hi' })

test('PL-05 the claim stands above the agent server and owns enabled channels, with or without a space', () => {
  const { claim } = claimWith(answers)
  expect([claim.name, claim.priority, claim.postsInPlace]).toEqual(['sandbox', 200, true])
  // Absent would mean that the reports of the host itself may be given to it.
  expect(claim.takesSystemReports).toBe(false)
  expect([claim.owns('fake:1'), claim.owns('fake:1', 'space'), claim.owns('fake:2', 'space')]).toEqual([
    true,
    true,
    false,
  ])
})

test.each([
  [{}, true],
  [{ mentionsBot: false, repliesToBot: true }, true],
  [{ mentionsBot: false }, false],
  [{ authorIsBot: true }, false],
  [{ integration: { id: 'w', own: false } }, false],
  [{ isDirect: true }, false],
])('PL-06 addressed: %j', (parts, addressed) => {
  expect(isSandboxAddress(message(parts))).toBe(addressed)
  expect(claimWith(answers).claim.admit(message(parts)) !== undefined).toBe(addressed)
})

test('PL-05 a message of another channel is not admitted', () => {
  expect(claimWith(answers).claim.admit(message({ channel: 'fake:2' }))).toBeUndefined()
})

test('PL-09 the reply is sent in chunks while the bot is typing, and typing ends', async () => {
  const { claim, sent, typing } = claimWith(async () => ({
    ok: true,
    text: `${'a'.repeat(1500)}\n\n${'b'.repeat(1500)}`,
  }))
  await claim.admit(message())?.run()
  expect(sent).toEqual([{ chunks: ['a'.repeat(1500), 'b'.repeat(1500)] }])
  expect(typing).toEqual(['start fake:1', 'stop fake:1'])
})

test('PL-09 a surface that cannot show typing costs no turn', async () => {
  const { claim, sent, lines } = claimWith(answers, { failTyping: true })
  await claim.admit(message())?.run()
  expect(sent).toEqual([{ chunks: ['hi'] }])
  expect(JSON.stringify(lines)).toContain('no typing here')
})

test('PL-09 a sign whose end fails later is reported, and ends no process', async () => {
  const { claim, sent, lines } = claimWith(answers, { hide: () => Promise.reject(new TypeError('too late')) })
  await claim.admit(message())?.run()
  expect(sent).toEqual([{ chunks: ['hi'] }])
  expect(lines).toMatchObject([{ level: 'error', fields: { category: 'delivery', cause: 'too late' } }])
})

test('PL-07 a queued turn checks again whether the channel is on, and says nothing when it is not', async () => {
  let ran = 0
  const { claim, on, sent, typing } = claimWith(async () => {
    ran += 1
    return { ok: true, text: 'hi' }
  })
  const admission = claim.admit(message())
  on.delete('fake:1')
  await admission?.run()
  expect([ran, sent, typing]).toEqual([0, [], []])
})

test('W-04 CS-13 a queued turn is the message as it was admitted', async () => {
  const seen: unknown[] = []
  const { claim } = claimWith(async (channel, speaker, text) => {
    seen.push(channel, speaker, text)
    return { ok: true, text: 'hi' }
  })
  const mutable = message()
  const admission = claim.admit(mutable)
  Object.assign(mutable, { channel: 'fake:9', authorId: 'u-bob', authorName: 'Bob', text: 'other' })
  await admission?.run()
  expect(seen).toEqual(['fake:1', { id: 'u-ann', name: 'Ann' }, 'hello'])
})

test('PL-10 W-79 a failed turn says its own words; a thrown one says others, and the log has the scrubbed cause', async () => {
  const failed = claimWith(async () => ({ ok: false, text: 'No key is set', category: 'credential' }))
  await failed.claim.admit(message())?.run()
  expect(failed.sent).toEqual([{ chunks: ['No key is set'] }])
  const thrown = claimWith(async () => {
    throw new TypeError('boom token=abcdefgh12345')
  })
  await thrown.claim.admit(message())?.run()
  expect(thrown.sent).toEqual([{ chunks: [THROWN_TEXT] }])
  expect(thrown.lines).toEqual([
    {
      level: 'error',
      fields: { channel: 'fake:1', category: 'unknown', cause: 'boom [redacted]' },
      message: 'a sandbox turn threw',
    },
  ])
  expect(thrown.typing).toHaveLength(2)
})

test('PL-14 a message whose turn comes when the host has stopped is told so, and nobody has to look at it', async () => {
  const { claim, sent, lines } = claimWith(async () => {
    throw new SandboxPluginError('closed', 'The runtime is closed; no more turns.')
  })
  await claim.admit(message())?.run()
  expect(sent).toEqual([{ chunks: [STOPPING_TEXT] }])
  expect(lines).toMatchObject([{ level: 'info', fields: { channel: 'fake:1', category: 'closed' } }])
})

test('RL-17 a turn whose worker cannot be removed was answered all the same: the answer is posted, and the log has the rest', async () => {
  const { claim, sent, lines } = claimWith(async () => {
    throw new CleanupFailed('the answer', [new TypeError('engine says no')])
  })
  await claim.admit(message())?.run()
  expect(sent).toEqual([{ chunks: ['the answer'] }])
  expect(lines).toMatchObject([{ level: 'error', fields: { channel: 'fake:1', category: 'cleanup_failed' } }])
})

test.each([
  ['more text than fits', { text: 'x'.repeat(limits.TURN_TEXT_CHARS + 1) }, TOO_LONG_TEXT],
  ['control characters in the id of a speaker', { authorId: 'u-\u0007' }, NOT_TAKEN_TEXT],
  ['a name that is too long', { authorName: 'x'.repeat(257) }, NOT_TAKEN_TEXT],
])('RL-08 a message that no turn can carry is answered with words for it: %s', async (_, parts, words) => {
  const { claim, sent, lines } = claimWith(async (channel, speaker, text) => {
    snapshotTurn(channel, speaker, text)
    return { ok: true, text: 'hi' }
  })
  await claim.admit(message(parts))?.run()
  expect(sent).toEqual([{ chunks: [words] }])
  expect(lines.map(({ level, fields }) => [level, (fields as { category?: string }).category])).toEqual([
    ['warn', 'input_invalid'],
  ])
})

test('W-77 a reply that cannot be sent is a delivery error, not a failed turn', async () => {
  const { claim, lines } = claimWith(answers, { failSend: true })
  await expect(claim.admit(message())?.run()).resolves.toBeUndefined()
  expect(lines).toMatchObject([
    {
      level: 'error',
      fields: { channel: 'fake:1', category: 'delivery', cause: 'surface down, [redacted]' },
    },
  ])
})

test('PL-11 background turns are skipped, stop is synchronous, start over is passed on', async () => {
  const { claim, fresh } = claimWith(answers)
  const turn = {
    channel: 'fake:1',
    target: 't',
    author: { id: 'a', name: 'A' },
    turnId: '1',
    text: 'x',
  } as const
  await expect(claim.background?.(turn)).resolves.toMatchObject({
    status: 'skipped',
    reason: expect.any(String),
  })
  expect([claim.stop?.('fake:1'), claim.stop?.('fake:2')]).toEqual([true, false])
  await expect(claim.startFresh('fake:1')).resolves.toBe('sandbox')
  expect(fresh).toEqual(['fake:1'])
})

test('PL-15 a host that says who speaks: only messages with a speaker are answered; on 0.8 nothing depends on it', () => {
  const speaker = { id: 'u-ann', name: 'Ann', tier: 'member', principalId: 'p-1' } as const
  const newer = claimWith(answers, { needsSpeaker: true }).claim
  expect(newer.admit(message())).toBeUndefined()
  expect(newer.admit(message({ speaker }))).toBeDefined()
  expect(claimWith(answers).claim.admit(message())).toBeDefined()
})

test('CS-21 the resolved speaker’s principalId goes with the account that wrote, as it was admitted', async () => {
  const seen: unknown[] = []
  const run: Run = async (_channel, speaker) => {
    seen.push(speaker)
    return { ok: true, text: 'hi' }
  }
  const speaker = { id: 'other', name: 'Other', tier: 'owner' as const, principalId: 'p-1' }
  const admission = claimWith(run, { needsSpeaker: true }).claim.admit(message({ speaker }))
  speaker.principalId = 'p-eve'
  await admission?.run()
  // Nobody resolves speakers on 0.8: one on a message is a surface's word.
  await claimWith(run).claim.admit(message({ speaker }))?.run()
  expect(seen).toEqual([
    { id: 'u-ann', name: 'Ann', principalId: 'p-1' },
    { id: 'u-ann', name: 'Ann' },
  ])
})

test('CS-21 PL-15 a resolved speaker without a principalId is not answered, and the operator hears why', () => {
  const { claim, lines, sent } = claimWith(answers, { needsSpeaker: true })
  const speaker = { id: 'u-ann', name: 'Ann', tier: 'member' } as const
  const told = { level: 'warn', fields: { channel: 'fake:1', speaker: 'u-ann' } }
  expect(claim.admit(message({ speaker }))).toBeUndefined()
  expect(claim.admit(message({ speaker: { ...speaker, principalId: '' } }))).toBeUndefined()
  expect(lines).toMatchObject([told, told])
  expect(claim.admit(message())).toBeUndefined()
  expect([lines.length, sent]).toEqual([2, []])
})

test('a message beyond the limits is not taken, and its speaker is told at once, ahead of what waits', async () => {
  const { claim, sent, lines } = claimWith(answers, { limits: new AdmissionLimits({ waitingPerSpeaker: 1 }) })
  const waiting = claim.admit(message())
  expect(claim.admit(message())).toBeUndefined()
  expect(sent).toMatchObject([{ chunks: [expect.stringContaining('did not take this one')] }])
  expect(lines).toMatchObject([{ level: 'info', fields: { channel: 'fake:1', limit: 'waitingPerSpeaker' } }])
  await waiting?.run()
  expect(sent.at(-1)).toEqual({ chunks: ['hi'] })
  expect(claim.admit(message())).toBeDefined()
})

test('a message that is not addressed to the bot does not count', () => {
  const { claim } = claimWith(answers, { limits: new AdmissionLimits({ perSpeakerMinute: 1 }) })
  claim.admit(message({ mentionsBot: false }))
  expect(claim.admit(message())).toBeDefined()
})

test('a turn that throws gives its place back', async () => {
  const failing: Run = () => Promise.reject(new TypeError('no'))
  const { claim } = claimWith(failing, { limits: new AdmissionLimits({ waitingPerSpeaker: 1 }) })
  await claim.admit(message())?.run()
  expect(claim.admit(message())).toBeDefined()
})

test.each([
  ['without its attachments', message({ attachments: undefined as never })],
  ['with a reference that is null', message({ reference: null as never })],
  ['that is none', undefined as never],
  [
    'that throws when it is read',
    new Proxy(message(), {
      get() {
        throw new TypeError('token=abcdefgh12345')
      },
    }),
  ],
])('W-29 a message %s does not count, and nothing is thrown into the host', (_, odd) => {
  const { claim, lines } = claimWith(answers, { limits: new AdmissionLimits({ waitingPerSpeaker: 1 }) })
  expect(claim.admit(odd)).toBeUndefined()
  expect(lines).toMatchObject([{ level: 'warn', fields: { cause: expect.not.stringContaining('token') } }])
  expect(claim.admit(message())).toBeDefined()
})

test('a host that drops a message gives its place back, and one that runs it twice has it answered once', async () => {
  const { claim, sent } = claimWith(answers, { limits: new AdmissionLimits({ waitingPerSpeaker: 1 }) })
  claim.admit(message())?.dropped?.()
  const admission = claim.admit(message())
  await Promise.all([admission?.run(), admission?.run()])
  await admission?.run()
  expect(sent).toEqual([{ chunks: ['hi'] }])
})

test('PL-10 W-79 whatever a turn throws, its speaker is told and the host’s queue sees no failure', async () => {
  for (const error of [Object.create(null), undefined, Object.assign(new Error(), { message: 7 })]) {
    const { claim, sent } = claimWith(() => Promise.reject(error))
    await claim.admit(message())?.run()
    expect(sent).toEqual([{ chunks: [THROWN_TEXT] }])
  }
})
