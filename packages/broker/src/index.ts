export { BodyBudget } from './engine/call/body-budget.ts'
export type {
  CallEvent,
  CallReason,
  CallRoute,
  CallUsage,
  ReceiptCall,
  WorkerReason,
} from './engine/call/call-event.ts'
export type { CallCredit, CreditAnswer, CreditCall } from './engine/call/credit.ts'
export { OwnedIds, type OwnedIdsOptions } from './engine/call/owned-ids.ts'
export { BrokerError, type BrokerErrorCode } from './engine/errors.ts'
export type { McpServer } from './engine/mcp/mcp-port.ts'
export type { DeskTurn } from './engine/turn/sealed-messages.ts'
export type { BoundTurn, TurnInput } from './engine/turn/turn-binding.ts'
export type { WorkerDesk } from './engine/turn/worker-desk.ts'
export { type BrokerOptions, checkBrokerOptions, type HostTool, type HostToolContext } from './options.ts'
export { SandboxBroker, type SandboxBrokerOptions } from './sandbox-broker.ts'
export { openSealedBroker, type SealedBroker } from './sealed-broker.ts'
export type { UpstreamChoice, UpstreamPicker } from './upstream-choice.ts'
