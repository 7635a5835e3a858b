export { PROTOCOL_LABEL, PROTOCOL_VERSION, protocolMismatch } from './capabilities.ts'
export * as limits from './limits.ts'
export { MESSAGE_TABLE, type MessageRow, type MessageToken } from './message-table.ts'
export { PI_PLACEHOLDER, SEALED_PLACEHOLDER } from './placeholder.ts'
export { McpSpec, ToolAnswer, ToolSpec } from './tool-call.ts'
export {
  FailureCode,
  isSealedTurn,
  readSealedResult,
  SealedOutcome,
  SealedResult,
  SealedTurn,
} from './turn.ts'
export { isWorkerHello, Posture, WorkerHello, type WorkerWelcome } from './worker-hello.ts'
export {
  BROKER_HOST,
  CALL_ROUTES,
  ROUTE_NAME,
  RUN_DIR,
  SOCKET_NAME,
  TURN_NONCE_HEADER,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
  WORKSPACE_DIR,
} from './worker-routes.ts'
