export type { BoundTurn, CallEvent, DeskState, LastingDesk, McpServer } from '@sandbox/broker/engine'
export type { SandboxCredentialScope } from '@sandbox/credential-scope'
export {
  type CompactionReport,
  type CompactionRequest,
  type CompactionResult,
  isPiThinkingLevel,
  type PiImage,
  type PiOutcome,
  type PiProgress,
  type PiReplyFile,
  type PiThinkingLevel,
} from '@sandbox/protocol'
export type { CompactionFallback, PiCompactionEvent } from './compaction/compaction-event.ts'
export type { PiCompaction, PiCompactor, PiCompactorContext } from './compaction/compaction-option.ts'
export type { PiHostContext } from './host-context.ts'
export type { PiHostTool, PiToolAnswer } from './host-tool.ts'
export { safeFileName, validateImages, validateReplyFiles } from './media.ts'
export { checkPiBrokerOptions, type PiSandboxBrokerOptions } from './options.ts'
export { PiSandboxBroker } from './pi-broker.ts'
export type { PiDeskTurn } from './pi-messages.ts'
export type { PiUpstreamChoice, PiUpstreamPicker } from './upstream-choice.ts'
