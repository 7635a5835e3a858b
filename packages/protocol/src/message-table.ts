import {
  PI_CALL_ANSWER_BYTES,
  PI_CALL_BODY_BYTES,
  PI_COMPACTION_BYTES,
  PI_MCP_BYTES,
  PI_RESULT_BYTES,
  PI_STREAM_BYTES,
  PI_TURN_BYTES,
  PRECHECK_CALL_BODY_BYTES,
  PRECHECK_MESSAGE_BYTES,
  SEALED_CALL_ANSWER_BYTES,
  SEALED_CALL_BODY_BYTES,
  SEALED_RESULT_BYTES,
  SEALED_TURN_BYTES,
  WORKER_MESSAGE_BYTES,
} from './limits.ts'

/** Which secret-free token a message must carry. */
export type MessageToken = 'none' | 'worker' | 'turn'

/** One row of the table: a message, who starts it, and how large it may be. */
export interface MessageRow {
  readonly message: string
  /** `both`: sealed and Pi; `all`: prechecks too. */
  readonly mode: 'sealed' | 'pi' | 'precheck' | 'both' | 'all'
  readonly method: 'GET' | 'POST'
  /** The path on the worker's socket; `<name>` stands for one name. */
  readonly path: string
  readonly token: MessageToken
  /** Largest request body. */
  readonly requestBytes: number
  /** Largest answer body. */
  readonly answerBytes: number
}

const small = WORKER_MESSAGE_BYTES

/**
 * Every message between a host and a worker. All of them are HTTP/1.1 requests that the worker sends on its own
 * Unix socket; the host never calls the worker.
 */
export const MESSAGE_TABLE: readonly MessageRow[] = [
  {
    message: 'hello',
    mode: 'all',
    method: 'POST',
    path: '/worker/hello',
    token: 'none',
    requestBytes: small,
    answerBytes: small,
  },
  {
    message: 'next',
    mode: 'sealed',
    method: 'GET',
    path: '/worker/next',
    token: 'worker',
    requestBytes: 0,
    answerBytes: SEALED_TURN_BYTES,
  },
  {
    message: 'next',
    mode: 'pi',
    method: 'GET',
    path: '/worker/next',
    token: 'worker',
    requestBytes: 0,
    answerBytes: PI_TURN_BYTES,
  },
  {
    message: 'next',
    mode: 'precheck',
    method: 'GET',
    path: '/worker/next',
    token: 'worker',
    requestBytes: 0,
    answerBytes: PRECHECK_MESSAGE_BYTES,
  },
  {
    message: 'ack',
    mode: 'all',
    method: 'POST',
    path: '/worker/ack',
    token: 'worker',
    requestBytes: small,
    answerBytes: small,
  },
  {
    message: 'heartbeat',
    mode: 'pi',
    method: 'POST',
    path: '/worker/heartbeat',
    token: 'worker',
    requestBytes: small,
    answerBytes: small,
  },
  {
    message: 'progress',
    mode: 'both',
    method: 'POST',
    path: '/worker/progress',
    token: 'worker',
    requestBytes: small,
    answerBytes: small,
  },
  {
    message: 'result',
    mode: 'sealed',
    method: 'POST',
    path: '/worker/result',
    token: 'worker',
    requestBytes: SEALED_RESULT_BYTES,
    answerBytes: small,
  },
  {
    message: 'result',
    mode: 'pi',
    method: 'POST',
    path: '/worker/result',
    token: 'worker',
    requestBytes: PI_RESULT_BYTES,
    answerBytes: small,
  },
  {
    message: 'result',
    mode: 'precheck',
    method: 'POST',
    path: '/worker/result',
    token: 'worker',
    requestBytes: PRECHECK_MESSAGE_BYTES,
    answerBytes: small,
  },
  {
    message: 'config',
    mode: 'pi',
    method: 'GET',
    path: '/worker/config',
    token: 'worker',
    requestBytes: 0,
    answerBytes: small,
  },
  {
    message: 'model',
    mode: 'sealed',
    method: 'POST',
    path: '/model',
    token: 'turn',
    requestBytes: SEALED_CALL_BODY_BYTES,
    answerBytes: SEALED_CALL_ANSWER_BYTES,
  },
  {
    message: 'tool',
    mode: 'sealed',
    method: 'POST',
    path: '/tools/<name>',
    token: 'turn',
    requestBytes: SEALED_CALL_BODY_BYTES,
    answerBytes: SEALED_CALL_ANSWER_BYTES,
  },
  {
    message: 'mcp',
    mode: 'sealed',
    method: 'POST',
    path: '/mcp/<server>',
    token: 'turn',
    requestBytes: SEALED_CALL_BODY_BYTES,
    answerBytes: SEALED_CALL_ANSWER_BYTES,
  },
  {
    message: 'mcp',
    mode: 'precheck',
    method: 'POST',
    path: '/mcp/<server>',
    token: 'none',
    requestBytes: PRECHECK_CALL_BODY_BYTES,
    answerBytes: SEALED_CALL_ANSWER_BYTES,
  },
  {
    message: 'messages',
    mode: 'pi',
    method: 'POST',
    path: '/anthropic/v1/messages',
    token: 'turn',
    requestBytes: PI_CALL_BODY_BYTES,
    answerBytes: PI_STREAM_BYTES,
  },
  {
    message: 'count-tokens',
    mode: 'pi',
    method: 'POST',
    path: '/anthropic/v1/messages/count_tokens',
    token: 'turn',
    requestBytes: PI_CALL_BODY_BYTES,
    answerBytes: PI_CALL_ANSWER_BYTES,
  },
  {
    message: 'messages',
    mode: 'pi',
    method: 'POST',
    path: '/v1/messages',
    token: 'turn',
    requestBytes: PI_CALL_BODY_BYTES,
    answerBytes: PI_STREAM_BYTES,
  },
  {
    message: 'count-tokens',
    mode: 'pi',
    method: 'POST',
    path: '/v1/messages/count_tokens',
    token: 'turn',
    requestBytes: PI_CALL_BODY_BYTES,
    answerBytes: PI_CALL_ANSWER_BYTES,
  },
  {
    message: 'tool',
    mode: 'pi',
    method: 'POST',
    path: '/tools/<name>',
    token: 'turn',
    requestBytes: PI_CALL_BODY_BYTES,
    answerBytes: PI_CALL_ANSWER_BYTES,
  },
  {
    message: 'mcp',
    mode: 'pi',
    method: 'POST',
    path: '/mcp/<server>',
    token: 'turn',
    requestBytes: PI_MCP_BYTES,
    answerBytes: PI_MCP_BYTES,
  },
  {
    message: 'compact',
    mode: 'pi',
    method: 'POST',
    path: '/compaction/compact',
    token: 'turn',
    requestBytes: PI_COMPACTION_BYTES,
    answerBytes: PI_COMPACTION_BYTES,
  },
  {
    message: 'compaction-report',
    mode: 'pi',
    method: 'POST',
    path: '/compaction/report',
    token: 'turn',
    requestBytes: small,
    answerBytes: small,
  },
]
