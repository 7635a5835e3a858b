import { type AuthSlot, CredentialError, Secret } from '@sandbox/credential-scope'
import { BrokerError } from '../engine/errors.ts'
import type { McpServer, McpTokenGetter, McpUse } from '../engine/mcp/mcp-port.ts'
import { readEndpoint } from '../engine/upstream/endpoint.ts'
import { sharedAgent } from '../engine/upstream/open-upstream.ts'
import { ClientLink, type Connection } from './client-link.ts'
import { HttpConnection } from './http-connection.ts'
import { WIRE_LIMITS, type WireLimits } from './http-wire.ts'
import { type McpCommand, STDIO_ORIGIN, StdioConnection } from './stdio-connection.ts'

/** Options of {@link mcpServer}. Exactly one of `url` and `command` is there. */
export interface McpServerOptions {
  /** `[a-zA-Z0-9_-]{1,100}`; for a sealed worker `[a-z][a-z0-9_]{0,47}`. */
  readonly name: string
  /** Streamable HTTP. `https:`, no user info, no fragment. */
  readonly url?: string
  /** A program on the host that speaks MCP on its standard input and output. */
  readonly command?: McpCommand
  /** Names of the tools that may be called, 1 to 128; no other is even shown. */
  readonly tools: readonly string[]
  /**
   * Asked before each call. No answer = the call fails. Omitted = calls carry no credential. What does not say which
   * origin it is for is for that of `url`.
   */
  readonly token?: McpTokenGetter
  /** Where the token goes in a request to `url`. Omitted = `authorization: Bearer`. */
  readonly authSlot?: AuthSlot
  /** Admits `http:` for loopback hosts. Omitted = false. */
  readonly allowHttp?: boolean
}

const NAME = /^[a-zA-Z0-9_-]{1,100}$/
const TOOL = /^[\w.-]{1,128}$/
const MOST_TOOLS = 128

/**
 * An MCP server for the `mcp` option of a broker: a connection per turn, of whichever protocol era it speaks.
 * @throws BrokerError `options_invalid`, naming the server and the field.
 */
export function mcpServer(options: McpServerOptions): McpServer {
  return makeServer(options, WIRE_LIMITS)
}

/** {@link mcpServer} with other limits. For tests. */
export function makeServer(options: McpServerOptions, limits: WireLimits): McpServer {
  const { name, token, command } = options
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new BrokerError('options_invalid', `mcpServer.name: must match ${NAME.source.slice(1, -1)}`)
  }
  const tools = readTools(name, options.tools)
  if (token !== undefined && typeof token !== 'function') throw invalid(name, 'token', 'must be a function')
  const { origin, connect } = command === undefined ? overHttp(options, limits) : overStdio(options, command)
  return Object.freeze({
    name,
    tools,
    ...(token === undefined ? {} : { credential: { token, origin } }),
    open: () => new ClientLink(connect),
  })
}

interface Way {
  readonly origin: string
  readonly connect: (use: McpUse) => Connection
}

function overHttp({ name, url: text, ...options }: McpServerOptions, limits: WireLimits): Way {
  const endpoint = readEndpoint(text, { allowHttp: options.allowHttp === true })
  if ('problem' in endpoint) throw invalid(name, 'url', endpoint.problem)
  const { url } = endpoint
  const authSlot = readSlot(name, options.authSlot ?? { kind: 'bearer' }, url)
  return {
    origin: url.origin,
    connect: () => new HttpConnection({ agent: sharedAgent(), url, authSlot, limits }),
  }
}

function overStdio({ name, url, token }: McpServerOptions, given: McpCommand): Way {
  if (url !== undefined) throw invalid(name, 'command', 'stands in place of url: give one of them')
  if (
    typeof given !== 'object' ||
    given === null ||
    typeof given.command !== 'string' ||
    given.command === ''
  ) {
    throw invalid(name, 'command.command', 'must name a program')
  }
  if (token !== undefined && !/^[A-Za-z_]\w*$/.test(given.tokenEnv ?? '')) {
    throw invalid(name, 'command.tokenEnv', 'must name the environment variable that gets the token')
  }
  const command = structuredClone(given)
  return { origin: STDIO_ORIGIN, connect: (use) => new StdioConnection(command, use) }
}

function readTools(server: string, tools: unknown): readonly string[] {
  if (!Array.isArray(tools) || tools.length === 0 || tools.length > MOST_TOOLS) {
    throw invalid(server, 'tools', `must be a list of 1 to ${MOST_TOOLS} names`)
  }
  for (const name of tools) {
    if (typeof name !== 'string' || !TOOL.test(name)) {
      throw invalid(server, 'tools', 'has a name that does not match [A-Za-z0-9_.-]{1,128}')
    }
  }
  if (new Set(tools).size < tools.length) throw invalid(server, 'tools', 'has a name twice')
  return Object.freeze([...tools])
}

const NOT_FOR_TOKENS =
  /^(accept.*|connection|content-.*|cookie|expect|host|keep-alive|last-event-id|mcp-.*|te|trailer|transfer-encoding|upgrade)$/i

/** Tries the slot with a value that is no credential. */
function readSlot(server: string, slot: AuthSlot, url: URL): AuthSlot {
  const { kind, name } = slot as { kind: string; name?: string }
  if (kind === 'header' && NOT_FOR_TOKENS.test(name ?? '')) {
    throw invalid(server, 'authSlot.name', `"${name}" is not for credentials`)
  }
  const copy = Object.freeze({ ...slot })
  try {
    new Secret({ token: 'sandbox-preflight', origin: url.origin }).applyTo({}, new URL(url), copy)
  } catch (cause) {
    if (!(cause instanceof TypeError) && !CredentialError.isInstance(cause)) throw cause
    throw new BrokerError('options_invalid', `mcpServer "${server}": authSlot: ${cause.message}`, { cause })
  }
  return copy
}

function invalid(server: string, field: string, problem: string): BrokerError {
  return new BrokerError('options_invalid', `mcpServer "${server}": ${field}: ${problem}`)
}
