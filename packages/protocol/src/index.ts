export { PROTOCOL_LABEL, PROTOCOL_VERSION, protocolMismatch } from './capabilities.ts'
export {
  type CompactionAnswer,
  type CompactionReason,
  CompactionReport,
  CompactionRequest,
  CompactionResult,
  readCompactionReport,
  readCompactionRequest,
  readCompactionResult,
} from './compaction.ts'
export {
  asksHostCompactor,
  type ConversationSize,
  compactionTrigger,
  type LastCompaction,
} from './compaction-tiers.ts'
export {
  atOnce,
  base64Size,
  IMAGE_TYPES,
  type ImageType,
  imageProblem,
  imagesPieces,
  imagesProblem,
  isSafeFileName,
  type Pieces,
  type PiImage,
  type PiReplyFile,
  replyFilesPieces,
  replyFilesProblem,
} from './files.ts'
export { inPieces } from './in-pieces.ts'
export * as limits from './limits.ts'
export { MESSAGE_TABLE, type MessageRow, type MessageToken } from './message-table.ts'
export {
  isPiTurn,
  PiMcpSpec,
  PiOutcome,
  PiProgress,
  PiResult,
  PiToolSpec,
  PiTurn,
  piResultPieces,
  piTurnPieces,
  piTurnProblem,
  readPiProgress,
  readPiResult,
} from './pi-turn.ts'
export type {
  PiHeartbeat,
  PiHeartbeatAnswer,
  PiToolCall,
  PiWelcome,
  PiWorkerConfig,
} from './pi-worker.ts'
export { PI_PLACEHOLDER, SEALED_PLACEHOLDER } from './placeholder.ts'
export {
  isPrecheckJob,
  PrecheckJob,
  PrecheckOutcome,
  PrecheckResult,
  readPrecheckResult,
} from './precheck.ts'
export { isPiThinkingLevel, type PiThinkingLevel, THINKING_LEVELS } from './thinking.ts'
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
  PI_CALL_ROUTES,
  ROUTE_NAME,
  RUN_DIR,
  SOCKET_NAME,
  TURN_NONCE_HEADER,
  WORKER_NONCE_HEADER,
  WORKER_ROUTES,
  WORKSPACE_DIR,
} from './worker-routes.ts'
