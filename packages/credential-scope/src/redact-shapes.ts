/** What stands in place of a credential. */
export const MASK = '[secret]'

/**
 * Masks whatever looks like a credential; text that is masked already stays as it is. Every expression runs in
 * linear time: its repetitions are bounded, or can end in one place only.
 */
export function maskShapes(text: string): string {
  return SHAPES.reduce((clean, [shape, masked]) => clean.replace(shape, masked), text)
}

type Shape = readonly [shape: RegExp, masked: string]

/** Names of headers whose whole value is a credential. */
const HEADERS = [
  'proxy-authorization',
  'authorization',
  'set-cookie2?',
  'cookie',
  'x-api-key',
  'x-goog-api-key',
  'x-auth-token',
  'x-access-token',
  'x-amz-security-token',
  'api-key',
  'ocp-apim-subscription-key',
].join('|')

/** Words at the end of a name that say that its value is a credential. */
const NAMES = [
  'secret',
  'token',
  'jwt',
  'password',
  'passwd',
  'passphrase',
  'pwd',
  '(?:api|access|secret|private|auth)[_.-]?key',
  'credentials?',
  'signature',
].join('|')

/** Key shapes of well-known services, by their published prefixes. */
const KEYS = [
  // OpenAI, Anthropic, OpenRouter and many others, also when a service masked the middle itself.
  'sk-[A-Za-z0-9_-]{2,}(?:(?:[*]{2,}|[.]{3}|…)[A-Za-z0-9_-]{2,}|[A-Za-z0-9_*-]{6,})',
  '(?:sk|rk|pk|whsec)_(?:(?:live|test)_)?[A-Za-z0-9]{12,}',
  '(?:gh[oprsu]|github_pat|hf|gsk|r8|npm|shpat|shpss|sbp|dop_v1|glsa|lin_api|ntn|tvly)_[A-Za-z0-9_]{12,}',
  '(?:glpat|xox[abeoprs]|xapp|xai|pplx|pypi|csk|nvapi|GOCSPX)-[A-Za-z0-9_-]{10,}',
  '(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}',
  'AIza[A-Za-z0-9_-]{30,}',
  'ya29[.][A-Za-z0-9_-]{10,}',
  'SG[.][A-Za-z0-9_-]{10,}[.][A-Za-z0-9_-]{10,}',
  'AGE-SECRET-KEY-[A-Z0-9]{20,}',
  // Discord and Telegram bots.
  '[A-Za-z0-9_-]{23,28}[.][A-Za-z0-9_-]{6}[.][A-Za-z0-9_-]{27,}',
  '[0-9]{8,10}:[A-Za-z0-9_-]{35}',
].join('|')

/** Between a name and its value: in text, headers, queries, code, JSON, and JSON inside a JSON string. */
const LINK = String.raw`\\?["']?[ \t]{0,8}(?:=>|[:=])[ \t]{0,8}`
const UNMASKED = String.raw`(?!\[secret\])`
/** Numbers and literals in the place of a secret are settings, not secrets. */
const NO_SETTING = '(?!(?:[0-9]{1,9}|true|false|null|undefined)(?![A-Za-z0-9_-]))'

const SHAPES: readonly Shape[] = [
  // RFC 7468 and PGP armour; without an end line, to the end of the text.
  [
    /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    MASK,
  ],
  // RFC 3986 section 3.2.1.
  [/\b([a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/?#@"'<>\\]{1,1024}@/gi, `$1${MASK}@`],
  // RFC 7519: a header and a payload that are JSON objects.
  [/(?<![A-Za-z0-9_-])ey[A-Za-z0-9_-]{10,}[.][A-Za-z0-9_-]{4,}(?:[.][A-Za-z0-9_-]*)?/g, MASK],
  // A header's value: up to its quote, else the rest of the line.
  ...quoted(`(?<![A-Za-z0-9])(?:${HEADERS})${LINK}`),
  [new RegExp(`(?<![A-Za-z0-9])((?:${HEADERS})${LINK})${UNMASKED}[^"'\\s\\\\][^"'\\n]*`, 'gi'), `$1${MASK}`],
  // RFC 6750; for RFC 7617 and "token", something that is no plain word.
  [/\b(bearer(?: |%20|[+]){1,8})[A-Za-z0-9._~+/=%-]{6,}/gi, `$1${MASK}`],
  [
    /\b((?:[Bb]asic|BASIC|[Tt]oken|TOKEN) {1,8})(?=[a-z]{0,23}[A-Z0-9_~+/=-]|[a-z]{24})[A-Za-z0-9._~+/=-]{8,}/g,
    `$1${MASK}`,
  ],
  [new RegExp(`(?<![A-Za-z0-9])(?:${KEYS})`, 'g'), MASK],
  // An assignment to a name that ends in a secret-looking word.
  ...quoted(`(?:${NAMES})${LINK}`, NO_SETTING),
  [
    new RegExp(`((?:${NAMES})${LINK})${UNMASKED}${NO_SETTING}[^\\s"'\\\\,;&<>(){}[\\]]{3,}`, 'gi'),
    `$1${MASK}`,
  ],
  [/([?&](?:key|sig|code|auth)=)(?!\[secret\])[^\s"'&#<>]{6,}/gi, `$1${MASK}`],
]

/** A quoted value, in the three ways of quoting. */
function quoted(head: string, unless = ''): Shape[] {
  const ways = [
    ['"', String.raw`(?:[^"\\\n]|\\.)+`],
    ["'", String.raw`(?:[^'\\\n]|\\.)+`],
    // Inside a JSON string: up to the next escaped quote.
    [String.raw`\\["']`, String.raw`(?:[^"'\\\n]|\\[^"'])+`],
  ]
  return ways.map(([quote, value]) => [
    new RegExp(`(${head}${quote})${UNMASKED}${unless}${value}`, 'gi'),
    `$1${MASK}`,
  ])
}
