import { encodingsOf, findSecret } from '@sandbox/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { redact, Secret } from './index.ts'

const origin = 'https://api.example.com'
const token = 'plain-canary-0123456789+/=&"<e>'
const secret = new Secret({ token, origin })

describe('known secrets', () => {
  test('T31 CS-19 in every encoding that another list knows', () => {
    for (const [name, form] of encodingsOf(token)) {
      // Base64 is looked for as it is inside longer data, see the next test.
      if (name.startsWith('base64')) continue
      const clean = redact(`before ${form.toString('latin1')} after`, [secret])
      expect([name, findSecret(Buffer.from(clean, 'latin1'), token)]).toEqual([name, []])
      expect(clean.startsWith('before ')).toBe(true)
      expect(clean.endsWith(' after')).toBe(true)
    }
  })

  test('W-19 the edges of base64 go with it', () => {
    for (const text of [token, `x${token}`, `xx${token}y`]) {
      expect(redact(`key: ${Buffer.from(text).toString('base64')}, ok`, [secret])).toMatch(
        /^key: [A-Za-z0-9]{0,2}\[secret\], ok$/,
      )
    }
  })

  test('W-19 also at the very beginning and end, and more than once', () => {
    const text = Buffer.from(token).toString('base64')
    expect(redact(`${text} ${text}`, [secret])).toBe('[secret] [secret]')
  })

  test('every place of every secret', () => {
    const other = new Secret({ token: 'another-secret-here', origin })
    expect(redact(`${token} another-secret-here ${token}${token}`, [secret, other])).toBe(
      '[secret] [secret] [secret][secret]',
    )
    expect(redact(`${token} x`, [])).not.toBe('[secret] x')
  })
})

describe('KH-03 general shapes', () => {
  test.each([
    ['user info of a URL', 'GET https://user:pa55@h.example/x?y', 'GET https://[secret]@h.example/x?y'],
    ['an authorization line', 'authorization: Bearer abc.def\nnext', 'authorization: [secret]\nnext'],
    ['the same as JSON', '{"authorization":"Bearer abcdef","x":1}', '{"authorization":"[secret]","x":1}'],
    [
      'JSON in JSON',
      '{\\"authorization\\":\\"Bearer ab\\",\\"x\\":1}',
      '{\\"authorization\\":\\"[secret]\\",\\"x\\":1}',
    ],
    ['a bearer value', 'sent Bearer abcdef123', 'sent Bearer [secret]'],
    ['a basic value', 'sent Basic dXNlcjpwYXNz to', 'sent Basic [secret] to'],
    ['a token value', 'token 0a1b2c3d4e5f is bad', 'token [secret] is bad'],
    ['a cookie', 'Cookie: a=b; c=d', 'Cookie: [secret]'],
    ['a cookie that is set', 'set-cookie: a=b; Path=/', 'set-cookie: [secret]'],
    ['a key header', 'x-api-key: abc', 'x-api-key: [secret]'],
    ['an OpenAI key', 'bad key sk-proj-abcdefgh12345678', 'bad key [secret]'],
    ['an Anthropic key', 'sk-ant-api03-abc_def-1234567890', '[secret]'],
    ['a key that the service masked (T30)', 'provided: sk-abcd1234********wxyz.', 'provided: [secret].'],
    ['a key with an ellipsis (T30)', 'sk-ant-a...wxyz', '[secret]'],
    ['a GitHub token', 'ghp_abcdefghijklmnopqrst', '[secret]'],
    ['a GitLab token', 'glpat-abcdefghijklmnop', '[secret]'],
    ['a Slack token', 'xoxb-1234567890-abcdefghij', '[secret]'],
    ['an AWS key id', 'AKIAABCDEFGHIJKLMNOP', '[secret]'],
    ['a Google key', `AIza${'x'.repeat(35)}`, '[secret]'],
    ['a Discord bot token', `${'M'.repeat(24)}.Gabcde.${'x'.repeat(38)}`, '[secret]'],
    ['a Telegram bot token', `123456789:${'A'.repeat(35)}`, '[secret]'],
    ['a JWT', 'got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc now', 'got [secret] now'],
    [
      'a private key block',
      'a\n-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nb',
      'a\n[secret]\nb',
    ],
    ['a private key block without an end', 'a -----BEGIN PRIVATE KEY-----\nabc\ndef', 'a [secret]'],
    ['an assignment', 'API_KEY=abc123 other', 'API_KEY=[secret] other'],
    ['a quoted one', `const password = 'it\\'s' // x`, `const password = '[secret]' // x`],
    ['one in JSON', '"client_secret": "x \\"y\\" z", "a": 1', '"client_secret": "[secret]", "a": 1'],
    ['one in camel case', 'accessToken: abcdef', 'accessToken: [secret]'],
    ['one in a query', '/x?a=1&access_token=abc&b=2', '/x?a=1&access_token=[secret]&b=2'],
    ['a key in a query', '/x?key=abcdefgh&b=2', '/x?key=[secret]&b=2'],
  ])('%s is masked', (_what, text, clean) => {
    expect(redact(text)).toBe(clean)
    expect(redact(clean)).toBe(clean)
  })

  test.each([
    'basic authentication failed',
    'token counting is fine',
    'max_tokens: 4096, "input_tokens":5',
    'token=5 password: null secret: true',
    'task-management-list, risk-assessment',
    'https://example.com/a@b?x=y',
    'status 401 after 12 ms',
  ])('%s stays', (text) => {
    expect(redact(text)).toBe(text)
  })

  test('control characters become spaces; tab and newline stay', () => {
    expect(redact('a\u0000b\u001b[31m\tc\r\nd\u0085')).toBe('a b [31m\tc \nd ')
  })

  test('property: masking twice is masking once', () => {
    const word = fc.constantFrom(
      ...[
        'token',
        'password',
        '=',
        ': ',
        '"',
        "'",
        '\\',
        '\n',
        ' ',
        'Bearer ',
        'authorization',
        'sk-abcdefgh1',
        '@',
      ],
      ...[
        'https://',
        'eyJabcdefghijk',
        '.abcdef',
        '[secret]',
        'key',
        '?',
        '&',
        '12',
        'cookie',
        '[',
        ']',
        ',',
        'x-api-key',
      ],
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), (words) => {
        const once = redact(words.join(''))
        expect(redact(once)).toBe(once)
      }),
      { numRuns: 5_000 },
    )
  })

  test('a hostile text costs time in proportion to its length', () => {
    for (const part of [
      'a://',
      'Bearer ',
      'token',
      'sk-',
      'ey',
      '"',
      'password=',
      'a.',
      'x-api-key:"',
      '-----BEGIN PRIVATE KEY',
    ]) {
      const time = (size: number) => {
        const text = part.repeat(size / part.length)
        const from = process.cpuUsage()
        redact(text)
        return process.cpuUsage(from).user
      }
      time(10_000)
      // Quadratic time would be 64 times as long, and minutes.
      expect(time(800_000)).toBeLessThan(40 * Math.max(time(100_000), 5_000))
    }
  })
})

describe('maxChars', () => {
  test('long text is cut, says so, and never has more', () => {
    expect(redact('x'.repeat(50), [], { maxChars: 10 })).toBe(`${'x'.repeat(9)}…`)
    expect(redact('x'.repeat(10), [], { maxChars: 10 })).toBe('x'.repeat(10))
    for (const size of [16_000, 17_000, 1_000_000]) {
      expect(redact('x'.repeat(size), [], { maxChars: 600 })).toBe(`${'x'.repeat(599)}…`)
    }
    expect(redact(`${'x'.repeat(8)}😀${'x'.repeat(9)}`, [], { maxChars: 10 })).toBe(`${'x'.repeat(8)}…`)
    expect(redact('abc', [], { maxChars: 0 })).toBe('…')
  })

  test('a secret that a cut would split is not shown in part', () => {
    for (let lead = 560; lead < 605; lead++) {
      const clean = redact(`${'.'.repeat(lead)}${token}`, [secret], { maxChars: 600 })
      expect(clean).not.toContain('pl')
    }
    // Masking shortens the text, so that what the first cut split would be shown.
    const block = `-----BEGIN PRIVATE KEY-----${'x'.repeat(16_000)}-----END PRIVATE KEY-----`
    for (let lead = 0; lead < 60; lead++) {
      const text = `${'.'.repeat(lead)}${block}${token.repeat(300)}`
      expect(redact(text, [secret], { maxChars: 600 })).not.toContain('pl')
    }
  })
})
