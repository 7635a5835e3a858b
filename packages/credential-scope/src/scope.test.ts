import { describe, expect, test } from 'vitest'
import { CredentialError, type SandboxCredentialScope, snapshotScope } from './index.ts'

const scope = { channel: 'demo:alpha', speaker: { id: 'u-ann', name: 'Ann' } }

function codeOf(run: () => unknown): string | undefined {
  try {
    run()
  } catch (error) {
    return CredentialError.isInstance(error) ? error.code : String(error)
  }
  return undefined
}

describe('snapshotScope', () => {
  test('CS-05 keeps exactly channel and speaker { id, name }, whatever else the host carries', () => {
    const rich = {
      ...scope,
      principal: 'p',
      signal: new AbortController().signal,
      speaker: { ...scope.speaker, roles: ['owner'] },
    }
    const copy = snapshotScope(rich)
    expect(copy).toStrictEqual(scope)
    expect(Reflect.ownKeys(copy)).toEqual(['channel', 'speaker'])
    expect(Reflect.ownKeys(copy.speaker)).toEqual(['id', 'name'])
  })

  test('CS-13 W-02 W-04 later changes of the input do not reach the copy', () => {
    const input = structuredClone(scope)
    const copy = snapshotScope(input)
    input.speaker.id = 'u-eve'
    input.channel = 'demo:other'
    expect(copy).toStrictEqual(scope)
  })

  test('W-03 the copy is frozen to its depth', () => {
    const copy = snapshotScope(scope) as { channel: string; speaker: { id: string } }
    expect(() => {
      copy.speaker.id = 'u-eve'
    }).toThrow(TypeError)
    expect(() => {
      copy.channel = 'demo:other'
    }).toThrow(TypeError)
  })

  test('W-04 an accessor is read once, so it cannot answer two things', () => {
    let reads = 0
    const copy = snapshotScope({
      get channel() {
        reads += 1
        return reads === 1 ? 'demo:alpha' : ''
      },
      speaker: scope.speaker,
    })
    expect(copy.channel).toBe('demo:alpha')
  })

  test('W-09 a name may be empty or odd, since it is never a key', () => {
    expect(snapshotScope({ ...scope, speaker: { id: 'u', name: '' } }).speaker.name).toBe('')
    expect(snapshotScope({ ...scope, speaker: { id: 'u', name: '\u0007' } }).speaker.name).toBe('\u0007')
  })

  test('CS-21 W-09 a principalId is copied when it is given, frozen, after id and name; and is not there otherwise', () => {
    const speaker = { principalId: 'p-1', name: 'Ann', id: 'u-ann' }
    const copy = snapshotScope({ channel: 'demo:alpha', speaker })
    speaker.principalId = 'p-eve'
    expect(Object.entries(copy.speaker)).toEqual([
      ['id', 'u-ann'],
      ['name', 'Ann'],
      ['principalId', 'p-1'],
    ])
    expect(Object.isFrozen(copy.speaker)).toBe(true)
    const none = snapshotScope({ ...scope, speaker: { ...scope.speaker, principalId: undefined } as never })
    expect(Reflect.ownKeys(none.speaker)).toEqual(['id', 'name'])
    const longest = 'p'.repeat(256)
    expect(
      snapshotScope({ ...scope, speaker: { ...scope.speaker, principalId: longest } }).speaker.principalId,
    ).toBe(longest)
  })

  test.each(['', ' ', 'p'.repeat(257), 'p\n', 7, null])(
    'CS-21 a principalId that is no id is refused: %j',
    (principalId) => {
      const speaker = { ...scope.speaker, principalId } as never
      expect(codeOf(() => snapshotScope({ ...scope, speaker }))).toBe('scope_invalid')
    },
  )

  test.each([
    ['no object', null],
    ['a text', 'demo:alpha'],
    ['no speaker', { channel: 'demo:alpha' }],
    ['a speaker that is null', { ...scope, speaker: null }],
    ['an empty channel', { ...scope, channel: '' }],
    ['a blank channel', { ...scope, channel: '  ' }],
    ['a channel that is no text', { ...scope, channel: 7 }],
    ['a channel with a control character', { ...scope, channel: 'demo:\u0000a' }],
    ['a channel that is too long', { ...scope, channel: 'c'.repeat(513) }],
    ['an empty speaker id', { ...scope, speaker: { id: '', name: 'Ann' } }],
    ['a speaker id with a line break', { ...scope, speaker: { id: 'a\nb', name: 'Ann' } }],
    ['a speaker id that is too long', { ...scope, speaker: { id: 'i'.repeat(257), name: 'Ann' } }],
    ['no name', { ...scope, speaker: { id: 'u' } }],
    ['a name that is too long', { ...scope, speaker: { id: 'u', name: 'n'.repeat(257) } }],
  ])('CS-20 %s is refused', (_what, input) => {
    expect(codeOf(() => snapshotScope(input as SandboxCredentialScope))).toBe('scope_invalid')
  })
})
