/** Where the host mounts the directory that holds the worker's socket, read-only, in both modes. */
export const RUN_DIR = '/run/sandbox'

/** The name of the socket inside {@link RUN_DIR}. */
export const SOCKET_NAME = 'worker.sock'

/** Where the channel's workspace is mounted, in both modes. */
export const WORKSPACE_DIR = '/workspace'

/** The one `host` header that a worker sends. */
export const BROKER_HOST = 'broker'

/** Carries the worker nonce, the answer to hello, on every later worker route. */
export const WORKER_NONCE_HEADER = 'x-sandbox-worker'

/** Carries the turn's nonce on every call that spends something: model, tools, MCP. */
export const TURN_NONCE_HEADER = 'x-sandbox-turn'

/** The worker routes: how a worker fetches its turn and hands in its result. */
export const WORKER_ROUTES = {
  hello: '/worker/hello',
  next: '/worker/next',
  ack: '/worker/ack',
  heartbeat: '/worker/heartbeat',
  progress: '/worker/progress',
  result: '/worker/result',
  config: '/worker/config',
} as const

/** The routes that reach something outside the container. */
export const CALL_ROUTES = {
  model: '/model',
  tools: '/tools/',
  mcp: '/mcp/',
} as const

/**
 * The routes that reach something outside the container in Pi mode. The Messages routes are there twice, so that a
 * client that was given the bare socket as its base URL works too; `?beta=true` may follow them.
 */
export const PI_CALL_ROUTES = {
  messages: '/anthropic/v1/messages',
  countTokens: '/anthropic/v1/messages/count_tokens',
  plainMessages: '/v1/messages',
  plainCountTokens: '/v1/messages/count_tokens',
  tools: '/tools/',
  mcp: '/mcp/',
  compact: '/compaction/compact',
  compactionReport: '/compaction/report',
} as const

/** A host tool's or an MCP server's name on a sealed route. */
export const ROUTE_NAME = /^[a-z][a-z0-9_]{0,47}$/
