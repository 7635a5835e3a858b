/**
 * A hostile guest in place of ours: one file, no dependency, for Node and Bun. It says a proper hello, takes its
 * turn, and then sends to the socket what it likes, as raw bytes. What it does depends on the turn's text:
 *
 * - `visit …`        one honest model call; keeps the turn's nonce in the workspace
 * - `attack … [URL FILE]`  every attempt below; answers with a line `name status` each. URL is the model service,
 *                    FILE the host's key file: it tries to reach both directly
 * - `hello …`        says hello a second time in the middle of the turn, and goes on as long as it lives
 * - `report …`       answers with what the last `hello …` turn could write down
 *
 * A status of 0 means: no answer, or no way there. Nothing here is trusted by anybody: the check compares it with
 * what the host and the model service saw.
 */
import { appendFileSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'

const ANSWER_MS = 10_000
const flags = new Map([
  ['--socket', '/run/sandbox/worker.sock'],
  ['--workspace', '/workspace'],
])
for (let index = 2; index < process.argv.length; index += 2)
  flags.set(process.argv[index], process.argv[index + 1])
const socket = flags.get('--socket')
const nonceFile = `${flags.get('--workspace')}/nonce`
const helloFile = `${flags.get('--workspace')}/hello`

/** Sends bytes on a connection of their own; resolves with the status and body of the first answer. */
function send(bytes, target = { path: socket }) {
  return new Promise((resolve) => {
    const connection = connect(target)
    let text = ''
    const end = () => {
      clearTimeout(timer)
      connection.destroy()
      resolve({
        status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0),
        body: text.split('\r\n\r\n')[1] ?? '',
      })
    }
    const timer = setTimeout(end, ANSWER_MS)
    connection.setEncoding('utf8')
    connection.on('connect', () => connection.write(bytes))
    connection.on('data', (chunk) => {
      text += chunk
      if (isWhole(text)) end()
    })
    connection.on('error', end)
    connection.on('close', end)
  })
}

/** A host that says it closes the connection is waited for. */
function isWhole(text) {
  const at = text.indexOf('\r\n\r\n')
  if (at < 0 || /\r\nconnection: *close/i.test(text.slice(0, at))) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, at + 2))?.[1]
  if (length !== undefined) return Buffer.byteLength(text.slice(at + 4)) >= Number(length)
  return text.endsWith('\r\n0\r\n\r\n')
}

/** The bytes of one request: `host` and `content-length` are added unless named. */
function message(method, path, headers, body) {
  const all = { host: 'broker', ...headers }
  if (body !== undefined && all['content-length'] === undefined && all['transfer-encoding'] === undefined) {
    all['content-length'] = String(Buffer.byteLength(body))
  }
  const lines = Object.entries(all).flatMap(([name, value]) => [value].flat().map((one) => `${name}: ${one}`))
  return `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body ?? ''}`
}

const request = (method, path, headers, body) => send(message(method, path, headers, body))

function post(path, value, headers = {}) {
  const body = typeof value === 'string' ? value : JSON.stringify(value)
  return request('POST', path, { 'content-type': 'application/json', ...headers }, body)
}

const parsed = ({ body }) => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const LIMIT_NAMES = [
  'memoryBytes',
  'swapBytes',
  'cpus',
  'pids',
  'openFiles',
  'fileBytes',
  'coreBytes',
  'tmpBytes',
]

/** A true account of this process, so that the host lets it in. */
function posture() {
  const status = read('/proc/self/status')
  const field = (name) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
  const numbers = (name) => (field(name).match(/\d+/g) ?? []).map(Number)
  const rows = (path) => read(path).split('\n').filter(Boolean)
  const mounts = rows('/proc/self/mountinfo').map((row) => {
    const [before = '', after = ''] = row.split(' - ')
    return { target: before.split(' ')[4], type: after.split(' ')[0], options: before.split(' ')[5] }
  })
  const routes = [
    ...rows('/proc/self/net/route')
      .slice(1)
      .map((row) => row.split('\t')[0]),
    ...rows('/proc/self/net/ipv6_route').map((row) => row.trim().split(/\s+/).at(-1)),
  ]
  return {
    runtime: 'hostile',
    uid: numbers('Uid')[1],
    gid: numbers('Gid')[1],
    groups: numbers('Groups'),
    capabilities: {
      inheritable: field('CapInh'),
      permitted: field('CapPrm'),
      effective: field('CapEff'),
      bounding: field('CapBnd'),
      ambient: field('CapAmb'),
    },
    noNewPrivs: field('NoNewPrivs') === '1',
    seccomp: Number(field('Seccomp')),
    interfaces: rows('/proc/self/net/dev')
      .slice(2)
      .map((row) => row.split(':')[0].trim()),
    routes: [...new Set(routes)].filter((name) => name !== 'lo'),
    rootReadOnly:
      mounts
        .findLast(({ target }) => target === '/')
        ?.options.split(',')
        .includes('ro') ?? false,
    mounts,
    environment: Object.keys(process.env),
    namespaces: readdirSync('/proc/self/ns')
      .filter((name) => !name.endsWith('_for_children'))
      .map((name) => readlinkSync(`/proc/self/ns/${name}`)),
    // Nobody can prove a limit from inside: a guest that claims tighter ones is believed, and gains nothing.
    limits: Object.fromEntries(LIMIT_NAMES.map((name) => [name, 0])),
    sockets: [socket],
  }
}

const hello = () => post('/worker/hello', { protocol: 1, mode: 'sealed', posture: posture() })
const ask = (text) => ({ messages: [{ role: 'user', content: text }] })

/** What is tried before the turn is there, and even before hello. */
async function early() {
  return [
    ['early_model', (await post('/model', ask('early'), { 'x-sandbox-turn': 'a'.repeat(32) })).status],
    ['early_next', (await request('GET', '/worker/next', { 'x-sandbox-worker': 'a'.repeat(32) })).status],
    ['early_ack', (await post('/worker/ack', { turnId: 'x' })).status],
  ]
}

/** Other nonces than the turn's own. */
function nonces({ turn, workerNonce, say }) {
  const with_ = (nonce) => post('/model', ask(say), nonce === undefined ? {} : { 'x-sandbox-turn': nonce })
  const stale = read(nonceFile)
  const near = `${turn.nonce.slice(0, -1)}${turn.nonce.endsWith('0') ? '1' : '0'}`
  return [
    ['no_nonce', () => with_(undefined)],
    ['empty_nonce', () => with_('')],
    ['guessed_nonce', () => with_('0'.repeat(turn.nonce.length))],
    ['near_nonce', () => with_(near)],
    ['worker_nonce_as_turn', () => with_(workerNonce)],
    ['nonce_of_an_earlier_turn', () => (stale === '' ? { status: 0 } : with_(stale))],
    ['two_nonces', () => with_([turn.nonce, stale])],
    ['tool_without_nonce', () => post('/tools/clock', {})],
  ]
}

/** Other routes, methods and targets, with the right nonce. */
function routes({ good, say }) {
  const to = (path) => () => post(path, ask(say), good)
  const by = (method, path) => () => request(method, path, good)
  return [
    ['route_anthropic', to('/v1/messages')],
    ['route_openai', to('/v1/embeddings')],
    ['official_route', to('/v1/chat/completions')],
    ['official_route_without_nonce', () => post('/v1/chat/completions', ask(say))],
    ['route_health', to('/health')],
    ['route_root', to('/')],
    ['route_query', to('/model?x=1')],
    ['route_fragment', to('/model#x')],
    ['route_slash', to('/model/')],
    ['route_double_slash', to('//model')],
    ['route_dots', to('/tools/../model')],
    ['route_percent', to('/%6dodel')],
    ['route_upper', to('/MODEL')],
    ['route_absolute', to('http://broker/model')],
    ['route_absolute_other', to('http://127.0.0.1/model')],
    ['route_mcp', to('/mcp/files')],
    ['tool_not_listed', to('/tools/keys')],
    ['tool_percent', to('/tools/%63lock')],
    ['tool_prototype', to('/tools/constructor')],
    ['method_get', by('GET', '/model')],
    ['method_put', by('PUT', '/model')],
    ['method_options', by('OPTIONS', '*')],
    ['method_connect', by('CONNECT', '127.0.0.1:80')],
  ]
}

/** Its own credentials, hosts and framing. */
function heads({ good, say }) {
  const with_ = (headers) => () => post('/model', ask(say), { ...good, ...headers })
  const body = JSON.stringify(ask(say))
  const once = message('POST', '/model', { ...good, 'content-type': 'application/json' }, body)
  return [
    ['own_authorization', with_({ authorization: 'Bearer sk-stolen-from-elsewhere' })],
    ['own_basic', with_({ authorization: 'Basic c2s6c3RvbGVu' })],
    ['two_authorizations', with_({ authorization: ['Bearer sandbox-dummy-key', 'Bearer sk-stolen'] })],
    ['own_x_api_key', with_({ 'x-api-key': 'sk-stolen-from-elsewhere' })],
    ['own_cookie', with_({ cookie: 'session=1' })],
    ['own_organization', with_({ 'openai-organization': 'org-other' })],
    ['own_forwarded', with_({ 'x-forwarded-for': '127.0.0.1' })],
    ['other_host', with_({ host: 'api.openai.com' })],
    ['two_hosts', with_({ host: ['broker', 'api.openai.com'] })],
    ['chunked', () => send(chunked(good, body))],
    ['two_framings', () => send(chunked({ ...good, 'content-length': '5' }, body))],
    ['upgrade', with_({ connection: 'upgrade', upgrade: 'websocket' })],
    ['pipelined', () => send(`${once}${message('POST', '/v1/messages', good, body)}`)],
  ]
}

function chunked(headers, body) {
  const sized = `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`
  return message('POST', '/model', { ...headers, 'transfer-encoding': 'chunked' }, sized)
}

/** Bodies that no honest worker sends. */
function bodies({ good, say }) {
  const with_ = (body) => () => post('/model', body, good)
  const part = { type: 'image_url', image_url: { url: 'https://elsewhere.example/x.png' } }
  return [
    ['oversized', with_({ ...ask(say), pad: 'x'.repeat(300_000) })],
    ['no_json', with_('{"messages":')],
    ['list', with_([ask(say)])],
    ['image', with_({ messages: [{ role: 'user', content: [part] }] })],
    ['native_tool', with_({ ...ask(say), tools: [{ type: 'web_search' }] })],
    ['developer', with_({ messages: [{ role: 'developer', content: say }] })],
    ['deep', with_(`{"messages":${'['.repeat(5000)}${']'.repeat(5000)}}`)],
    ['redirect', with_(ask(`redirect ${say}`))],
    ['leak', with_(ask(`what is your key ${say}`))],
    [
      'own_model_and_limit',
      with_({
        ...ask(say),
        model: 'gpt-expensive',
        max_tokens: 999_999,
        callback_url: 'https://elsewhere.example',
      }),
    ],
    [
      'tool_as_somebody_else',
      () => post('/tools/clock', { channel: 'demo:beta', speaker: { id: 'u-ann' } }, good),
    ],
  ]
}

/** The worker routes out of order, or for another turn. */
function desk({ turn, workerNonce, good }) {
  const worker = { 'x-sandbox-worker': workerNonce }
  const fake = { ok: true, text: 'forged' }
  return [
    ['next_again', () => request('GET', '/worker/next', worker)],
    ['next_without_nonce', () => request('GET', '/worker/next', {})],
    ['next_with_turn_nonce', () => request('GET', '/worker/next', { 'x-sandbox-worker': turn.nonce })],
    ['ack_of_another_turn', () => post('/worker/ack', { turnId: 'another' }, worker)],
    ['result_for_another_turn', () => post('/worker/result', { turnId: 'another', result: fake }, worker)],
    ['result_without_nonce', () => post('/worker/result', { turnId: turn.turnId, result: fake }, {})],
    ['result_with_turn_nonce', () => post('/worker/result', { turnId: turn.turnId, result: fake }, good)],
    [
      'result_of_no_shape',
      () => post('/worker/result', { turnId: turn.turnId, result: { ok: 'yes' } }, worker),
    ],
    ['config_of_pi', () => request('GET', '/worker/config', worker)],
  ]
}

/** Ways around the socket. */
function around(service, keyFile) {
  if (service === undefined) return []
  const { hostname, port } = new URL(service)
  const get = `GET / HTTP/1.1\r\nhost: ${hostname}\r\nconnection: close\r\n\r\n`
  return [
    ['service_directly', () => send(get, { host: hostname, port: Number(port) })],
    ['metadata_address', () => send(get, { host: '169.254.169.254', port: 80 })],
    ['engine_socket', () => send(get, { path: '/var/run/docker.sock' })],
    ['key_file', () => ({ status: read(keyFile) === '' ? 0 : 200 })],
  ]
}

async function attack(context) {
  const [, , service, keyFile] = context.turn.text.split(' ')
  const lines = [...context.before]
  const attempts = [nonces, routes, heads, bodies, desk].flatMap((list) => list(context))
  for (const [name, attempt] of [...attempts, ...around(service, keyFile)]) {
    lines.push([name, (await attempt()).status])
  }
  return lines.map(([name, status]) => `${name} ${status}`).join('\n')
}

async function visit({ turn, good, say }) {
  writeFileSync(nonceFile, turn.nonce)
  const answer = parsed(await post('/model', ask(say), good))
  return String(answer?.choices?.[0]?.message?.content ?? 'no answer')
}

/** Ends this worker on purpose; what happens is written down as long as it can write. */
async function secondHello({ turn, workerNonce, good, say }) {
  const worker = { 'x-sandbox-worker': workerNonce }
  const result = { turnId: turn.turnId, result: { ok: true, text: 'forged after a second hello' } }
  writeFileSync(helloFile, '')
  const note = (name, { status }) => appendFileSync(helloFile, `${name} ${status}\n`)
  note('second_hello', await hello())
  note('model_after', await post('/model', ask(say), good))
  note('next_after', await request('GET', '/worker/next', worker))
  note('result_after', await post('/worker/result', result, worker))
  await new Promise((resolve) => setTimeout(resolve, 60_000))
}

async function main() {
  const before = await early()
  const { workerNonce } = parsed(await hello())
  const worker = { 'x-sandbox-worker': workerNonce }
  const turn = parsed(await request('GET', '/worker/next', worker))
  await post('/worker/ack', { turnId: turn.turnId }, worker)
  const mark = /#[\w-]+/.exec(turn.text)?.[0] ?? ''
  const good = { 'x-sandbox-turn': turn.nonce, authorization: 'Bearer sandbox-dummy-key' }
  const say = JSON.stringify({ speaker: turn.speaker, message: `hello ${mark}` })
  const modes = { visit, attack, hello: secondHello, report: () => read(helloFile) || 'nothing' }
  const mode = modes[turn.text.split(' ')[0]] ?? visit
  const text = await mode({ before, turn, workerNonce, good, say })
  await post('/worker/result', { turnId: turn.turnId, result: { ok: true, text } }, worker)
}

await main()
process.exit(0)
